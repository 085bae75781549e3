#!/usr/bin/env bash
# overlay.sh up|down: makes the host a member of the EasyTier network, and proves it with a payload.
#
# Runs as root, with the settings on standard input. Running it again on a healthy host restarts nothing.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"

OVERLAY_IP='' DEVICE='' TOML_BASE64='' NETWORK_SECRET='' RPC_PORT='' ECHO_PORT=''
BOOTSTRAP_IPS='' PEERS='' EASYTIER_VERSION=''

readonly SERVICE=rlinf-easytier.service
known=false
# Seconds that a payload may take to pass.
patience=40
readonly started_from=("$ETC/easytier.toml" "$ETC/easytier.env" "$OPT/easytier/.sha256")
readonly ECHO=${ECHO_UNITS[0]}
readonly files=("$ETC/easytier.toml" "$ETC/easytier.env" "$UNITS/$SERVICE" "${ECHO_UNITS[@]/#/$UNITS/}")

main() {
  local action=$1
  read_settings OVERLAY_IP DEVICE TOML_BASE64 NETWORK_SECRET RPC_PORT ECHO_PORT BOOTSTRAP_IPS PEERS EASYTIER_VERSION
  one_at_a_time
  case $action in
    up) up ;;
    down) down ;;
    *) fail "overlay.sh takes up or down, not $action" ;;
  esac
}

up() {
  if [[ -e $UNITS/$SERVICE ]]; then known=true; fi
  remember "$SERVICE" "${files[@]}"
  trap 'undo $?' EXIT
  write_files
  # One that has been running may still hold on to connections from another address of this host, for some 40 s.
  if running_as_configured "$SERVICE" "${started_from[@]}"; then patience=90; fi
  start "$SERVICE" "${started_from[@]}"
  wait_for_device
  enable "$ECHO"
  is_active "$ECHO" || restart "$ECHO" ||
    fail "the echo service can't listen on $OVERLAY_IP:$ECHO_PORT: $(last_log "$ECHO")"
  prove
  note_written overlay "${files[@]}"
  printf 'member ip=%s device=%s easytier=%s\n' "$OVERLAY_IP" "$DEVICE" "$EASYTIER_VERSION"
}

# What failed leaves no trace: Pulumi records nothing of a first run, and keeps the old settings of a later one.
undo() {
  if (($1 != 0)); then
    if $known; then
      bring_back
      restart "$ECHO" || true
    else
      remove
    fi
  fi
  forget
  exit "$1"
}

write_files() {
  local echo_before unit
  put "$ETC/easytier.toml" 0600 root:root < <(base64 -d <<<"$TOML_BASE64")
  put "$ETC/easytier.env" 0600 root:root < <(
    printf 'ET_NETWORK_SECRET=%s\n' "$(quoted "$NETWORK_SECRET")"
    printf 'ET_RPC_PORTAL=127.0.0.1:%s\n' "$RPC_PORT"
    # At INFO, EasyTier prints its configuration, the secret included.
    printf 'ET_CONSOLE_LOG_LEVEL=warn\n'
  )
  echo_before=$(cat "$UNITS/$ECHO" 2>/dev/null || true)
  put "$UNITS/$SERVICE" 0644 root:root <"$here/$SERVICE"
  for unit in "${ECHO_UNITS[@]}"; do
    put "$UNITS/$unit" 0644 root:root < <(sed -e "s/@ADDRESS@/$OVERLAY_IP/" -e "s/@PORT@/$ECHO_PORT/" "$here/$unit")
  done
  reload_units
  if [[ -n $echo_before && $echo_before != "$(cat "$UNITS/$ECHO")" ]]; then stop "$ECHO"; fi
}

wait_for_device() {
  wait_for 30 has_address "$DEVICE" "$OVERLAY_IP" ||
    fail "EasyTier runs, but $DEVICE has no address $OVERLAY_IP after 30 s. Is another program using the device name? EasyTier says: $(last_log "$SERVICE")"
}

# A peer list proves nothing (addresses of two networks list each other): only a payload does.
prove() {
  local bootstrap
  for bootstrap in $BOOTSTRAP_IPS; do
    say "$HOST: waiting for a payload to pass to the bootstrap, $bootstrap"
    wait_for "$patience" payload_passes "$bootstrap" "$ECHO_PORT" || fail "$(diagnosis "$bootstrap")"
    say "$HOST: $OVERLAY_IP reaches the bootstrap"
  done
}

# diagnosis BOOTSTRAP_IP: why it is not reached.
diagnosis() {
  local uri address
  printf 'no payload passes from %s to the bootstrap %s after %s s. ' "$OVERLAY_IP" "$1" "$patience"
  for uri in $PEERS; do
    address=${uri#tcp://}
    if ! port_open "${address%:*}" "${address##*:}"; then
      printf '%s does not answer: open TCP and UDP port %s there for this host, or correct its public_address. ' "$uri" "${address##*:}"
      return
    fi
  done
  printf 'Its port answers, so it refuses this host: the network secret or the network name here is not the one it runs with. '
  if [[ -n ${RLINF_CLOUD_EDGE_AGAIN:-} ]]; then
    printf 'Ask the operator for a new join script.'
  else
    printf 'Run a plain "pulumi up", without --target, so that every host gets the same networkSecret.'
  fi
}

down() {
  remove
  printf 'removed\n'
}

remove() {
  remove_service "${ECHO_UNITS[@]}" "$SERVICE"
  rm -f -- "$ETC/easytier.toml" "$ETC/easytier.env" "$RUN/$SERVICE.started" "$VAR/written/overlay"
  say "$HOST: left the overlay"
}

main "$@"
