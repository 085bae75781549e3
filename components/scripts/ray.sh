#!/usr/bin/env bash
# ray.sh up|down: runs Ray on the host as a service, on its overlay address and with its RLinf rank.
#
# Runs as root, with the settings on standard input. Running it again on a healthy host restarts nothing. Ray is
# stopped by its own control group and never by `ray stop`, which would take other people's clusters with it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"
# shellcheck source=components/scripts/activation.sh
. "$here/activation.sh"

ROLE='' RANK='' OVERLAY_IP='' DEVICE='' HEAD_IP='' ECHO_PORT='' FACTS='' HEAD_FACTS=''
RAY_VENV='' RAY_ACTIVATE=''
RAY_USER='' RAY_TOKEN='' RAY_PORTS='' RAY_ARGUMENTS='' RAY_ENV_BASE64='' GCS_PORT='' NODE_MANAGER_PORT='' JOIN=''

readonly SERVICE=rlinf-ray.service
readonly files=("$ETC/ray.env" "$ETC/ray.start" "$ETC/ray.token" "$ETC/ray.nft")
known=false

main() {
  local action=$1
  read_settings ROLE RANK OVERLAY_IP DEVICE HEAD_IP ECHO_PORT FACTS HEAD_FACTS RAY_VENV RAY_ACTIVATE \
    RAY_USER RAY_TOKEN RAY_PORTS RAY_ARGUMENTS RAY_ENV_BASE64 GCS_PORT NODE_MANAGER_PORT JOIN
  one_at_a_time
  case $action in
    up) up ;;
    down) down ;;
    *) fail "ray.sh takes up or down, not $action" ;;
  esac
}

# fact NAME FACTS: one value of the line that prepare.sh ended with.
fact() {
  local word
  for word in $2; do
    if [[ $word == "$1="* ]]; then
      printf '%s' "${word#*=}"
      return
    fi
  done
}

up() {
  same_versions
  if [[ -e $UNITS/$SERVICE ]]; then known=true; fi
  remember "$SERVICE" "${files[@]}" "$UNITS/$SERVICE"
  trap 'undo $?' EXIT
  write_files
  if [[ $ROLE == worker ]]; then reach_head; fi
  start "$SERVICE" "${files[@]}" "$UNITS/$SERVICE"
  wait_until_listening
  if ! nft list table inet rlinf_cloud_edge >/dev/null 2>&1; then
    say "$HOST: closing Ray's ports to other networks again"
    "$here/close-ports.sh" "$(main_pid "$SERVICE")"
  fi
  remove_old_environments
  note_written ray "${files[@]}" "$UNITS/$SERVICE"
  printf '%s rank=%s ip=%s ray=%s python=%s started=%s\n' "$ROLE" "$RANK" "$OVERLAY_IP" "$(fact ray "$FACTS")" \
    "$(fact python "$FACTS")" "$(invocation "$SERVICE")"
}

# What failed leaves no trace: Pulumi records nothing of a first run, and keeps the old settings of a later one.
undo() {
  if (($1 != 0)); then
    if $known; then bring_back; else remove; fi
  fi
  forget
  exit "$1"
}

# Ray compares both to the patch level, and a worker that differs is turned away with a message few have understood.
same_versions() {
  local what
  [[ $ROLE == worker ]] || return 0
  for what in python ray; do
    if [[ $(fact "$what" "$FACTS") != "$(fact "$what" "$HEAD_FACTS")" ]]; then
      fail "$what is $(fact "$what" "$FACTS") here and $(fact "$what" "$HEAD_FACTS") on the head; Ray needs the same on every node. Install the same version on both"
    fi
  done
}

write_files() {
  local owner environment
  owner=$RAY_USER:$(id -gn "$RAY_USER")
  environment=$(existing_environment)
  install -d -m 0755 -o "$RAY_USER" -g "$(id -gn "$RAY_USER")" "$VAR/ray" "$VAR/ray/tmp"
  put "$ETC/ray.token" 0600 "$owner" < <(printf '%s' "$RAY_TOKEN")
  put "$ETC/ray.env" 0600 "$owner" < <(
    printf '%s\n' "$environment"
    # Ray's processes leave files in /tmp; here they are found again.
    printf 'TMPDIR=%s\n' "$(quoted "$VAR/ray/tmp")"
    # A start that takes longer than this is thrown away, and the next one takes as long: 30 s, Ray's own limit, made a
    # busy host of two cores start for ever. A raylet that has given up is seen by watch-ray.sh.
    printf 'RAY_raylet_start_wait_time_s="150"\n'
    # At its end Ray would tell the head that it drains the node, for the requests of Ray Serve, and wait up to 30 s for
    # it; on the head, whose own GCS ends with it, always that long.
    printf 'RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S="0"\n'
    base64 -d <<<"$RAY_ENV_BASE64" | while IFS= read -r line; do
      printf '%s=%s\n' "${line%%=*}" "$(quoted "${line#*=}")"
    done
  )
  put "$ETC/ray.start" 0644 root:root < <(
    printf 'HOST=%s\nOVERLAY_IP=%s\nDEVICE=%s\nRAY_ARGUMENTS=%s\n' "$HOST" "$OVERLAY_IP" "$DEVICE" "$RAY_ARGUMENTS"
    # The gate asks for it.
    if [[ -n $JOIN ]]; then printf 'JOIN=%s\n' "$JOIN"; fi
  )
  put "$ETC/ray.nft" 0644 root:root < <(sed -e "s/@DEVICE@/$DEVICE/" -e "s/@PORTS@/$RAY_PORTS${ECHO_PORT:+, $ECHO_PORT}/" "$here/ray.nft")
  put "$UNITS/$SERVICE" 0644 root:root < <(sed -e "s/@USER@/$RAY_USER/" -e "s|@UNITS@|$UNITS|" "$here/$SERVICE")
  reload_units
}

# What makes `ray` and `python` those of the environment, as lines of an environment file.
existing_environment() {
  local file python venv=$RAY_VENV
  if [[ -z $RAY_ACTIVATE ]]; then
    [[ -n $venv ]] || venv=$(fact venv "$FACTS")
    printf 'PATH=%s\n' "$(quoted "$venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")"
    return
  fi
  file=$(mktemp)
  activate "$RAY_USER" "$RAY_ACTIVATE" "$file" || fail "$(activates_nothing "$RAY_USER" "$RAY_ACTIVATE")"
  python=$(activated_program 1 "$file")
  runuser -u "$RAY_USER" -- "$python" -I -B "$here/environment_file.py" <"$file"
  rm -f -- "$file"
}

reach_head() {
  if [[ -z $ECHO_PORT ]]; then
    wait_for 40 port_open "$HEAD_IP" "$GCS_PORT" ||
      fail "the head does not answer at $HEAD_IP:$GCS_PORT after 40 s, seen from $OVERLAY_IP. In direct mode every node must reach every other: open the way between them, or add cluster.overlay"
    return
  fi
  wait_for 40 payload_passes "$HEAD_IP" "$ECHO_PORT" ||
    fail "no payload passes from $OVERLAY_IP to the head $HEAD_IP after 40 s, though the bootstrap is reached. See on both what EasyTier says; here: $HOW_TO_SEE_LOGS"
}

listening() { ! has_failed "$SERVICE" && port_open "$OVERLAY_IP" "$1"; }

# The raylet listens once it is registered with the head; the gate then proves that it works.
wait_until_listening() {
  say "$HOST: waiting for Ray"
  if [[ $ROLE == head ]]; then
    wait_for 180 listening "$GCS_PORT" || fail "the Ray head does not listen on $OVERLAY_IP:$GCS_PORT after 180 s: $(last_log "$SERVICE")"
  fi
  wait_for 180 listening "$NODE_MANAGER_PORT" ||
    fail "Ray did not join the head $HEAD_IP:$GCS_PORT within 180 s: $(last_log "$SERVICE")"
  say "$HOST: Ray runs, rank $RANK on $OVERLAY_IP"
  if [[ $(nft list table inet rlinf_cloud_edge) != *cgroupv2* ]]; then
    say "$HOST: warning: its kernel or nft can't tell whose a port is, so what Ray's workers listen on answers on every network; keep the others off with a firewall of your own"
  fi
}

# Environments of earlier settings go once nothing runs from them.
remove_old_environments() {
  local venv
  for venv in "$OPT"/ray-*-python-*; do
    if [[ -d $venv && $venv != "$(fact venv "$FACTS")" ]]; then rm -rf -- "$venv"; fi
  done
}

down() {
  remove
  printf 'removed\n'
}

remove() {
  remove_service "$SERVICE"
  if command -v nft >/dev/null; then nft delete table inet rlinf_cloud_edge 2>/dev/null || true; fi
  rm -rf -- "${files[@]}" "$RUN/$SERVICE.started" "$VAR/ray" "$VAR/written/ray"
  say "$HOST: Ray is gone"
}

main "$@"
