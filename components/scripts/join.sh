#!/usr/bin/env bash
# Makes this machine a host of a cloud-edge cluster, by hand: for machines that the cluster's operator can't log in to.
#
#   sudo bash join-HOST.sh            check this machine, install, start, prove that it works; safe to run again
#   sudo bash join-HOST.sh --status   what runs here
#   sudo bash join-HOST.sh --down     undo everything
#   bash join-HOST.sh --help          this text
#
# What it does is all in this file: the steps here, the settings and the scripts below. It needs root, for a network
# device and services; it opens no port to other networks, and changes nothing of what is installed already.
# This file holds the secret of the cluster's network: keep it to yourself (mode 0600), and delete it when it has run.
# shellcheck disable=SC2153 # the names in capitals are given below, with the settings
set -euo pipefail

readonly INSTALLED=/opt/rlinf-cloud-edge/libexec

# What the scripts below tell to do once a fault is put right.
export RLINF_CLOUD_EDGE_AGAIN="run this join script again"

tell() { printf '%s\n' "$*" >&2; }

stop() {
  tell "$NAME: $*"
  exit 1
}

main() {
  local action=up
  case ${1:-} in
    '') ;;
    --down | --status) action=${1#--} ;;
    --help | -h)
      help_text
      return
      ;;
    *)
      tell "$NAME: $1 is not known. Run it with nothing, --status, --down or --help."
      return 2
      ;;
  esac
  (($# < 2)) || stop "one option at most; see --help"
  [[ $(uname -s) == Linux ]] || stop "this machine runs $(uname -s); EasyTier and Ray are installed on Linux only"
  [[ $(id -u) -eq 0 ]] || stop "this needs root: run it with sudo, or as root"
  unpack
  "$action"
}

help_text() {
  printf 'usage: sudo bash join-%s.sh [--status | --down | --help]\n\n' "$NAME"
  printf '  (nothing)  check this machine, install, start, prove that it works; safe to run again\n'
  printf '  --status   what runs here\n'
  printf '  --down     undo everything\n\n'
  printf 'It makes this machine the host %s of the network %s. %s\n' "$NAME" "$NETWORK" "$(what_for)"
  printf 'The file holds a secret: keep it at mode 0600, and delete it when it has run.\n'
}

what_for() {
  if [[ $KIND == overlay ]]; then
    printf 'Its operator then logs in over that network, as %s, and does the rest.' "$LOGIN"
  elif [[ -n $RANK ]]; then
    printf 'It then runs Ray, rank %s. Nobody logs in.' "$RANK"
  else
    printf 'It runs no Ray for now. Nobody logs in.'
  fi
}

unpack() {
  local tool
  for tool in tar:tar gzip:gzip base64:coreutils mktemp:coreutils sed:sed; do
    command -v "${tool%:*}" >/dev/null || stop "the command ${tool%:*} is missing; install ${tool#*:}"
  done
  work=$(mktemp -d)
  trap 'rm -rf -- "$work"' EXIT
  scripts | base64 -d | tar -xz -C "$work" || stop "this file is damaged; ask for it again"
}

up() {
  local facts
  tell "$NAME: joining the network $NETWORK"
  settings_check | with_account | bash "$work/check.sh" >/dev/null || failed
  facts=$(settings_prepare | with_account | bash "$work/prepare.sh" up) || failed
  if [[ -n $OVERLAY_IP ]]; then settings_overlay | bash "$INSTALLED/overlay.sh" up >/dev/null || failed; fi
  if [[ -n $RANK ]]; then
    { settings_ray | with_account && printf 'FACTS=%s\n' "$facts"; } | bash "$INSTALLED/ray.sh" up >/dev/null || failed
  elif [[ $KIND == script ]]; then
    bash "$INSTALLED/ray.sh" down <<<"HOST=$NAME" >/dev/null || failed
  fi
  if [[ $KIND == overlay ]]; then
    check_login
    tell "$NAME: joined, with the address $OVERLAY_IP. Tell the operator: \"$NAME has joined\"."
    host_key
  else
    tell "$NAME: joined. Tell the operator: \"$NAME has joined\"."
  fi
  tell "$NAME: delete this file now, it holds a secret. Undoing everything later takes it, or another copy: --down."
}

failed() {
  tell "$NAME: not joined. Put right what is named above and run this again; --down undoes what was done so far."
  exit 1
}

# with_account: the settings on standard input, with the account that Ray runs as, where they leave it open: whoever
# has called sudo.
with_account() {
  local line
  while IFS= read -r line; do
    if [[ $line == RAY_USER= && $KIND == script && -n $RANK ]]; then line=RAY_USER=${SUDO_USER:-root}; fi
    printf '%s\n' "$line"
  done
}

# The operator's login is for the owner to allow; what can be seen of it from here is told.
check_login() {
  local hex
  printf -v hex '%04X' "$SSH_PORT"
  if ! id -u "$LOGIN" >/dev/null 2>&1; then
    tell "$NAME: warning: there is no account $LOGIN, as which the operator wants to log in"
  fi
  if ! awk -v port=":$hex" '$4 == "0A" && substr($2, length($2) - 4) == port { found = 1 } END { exit !found }' \
    /proc/net/tcp /proc/net/tcp6 2>/dev/null; then
    tell "$NAME: warning: no sshd listens on port $SSH_PORT, at which the operator wants to log in"
  fi
}

host_key() {
  local file=/etc/ssh/ssh_host_ed25519_key.pub kind key rest
  if [[ -r $file ]]; then
    read -r kind key rest <"$file"
    tell "$NAME: its ssh host key, for the operator's settings (ssh.host_key): $kind $key${rest:+}"
  fi
}

status() {
  local service state
  for service in easytier ray; do
    if [[ ! -d /run/systemd/system ]]; then
      state=stopped
      if [[ -x $INSTALLED/prepare.sh ]] &&
        python3 -B -E -s "$INSTALLED/supervise.py" active "rlinf-$service.service" 2>/dev/null; then state=active; fi
    else
      state=$(systemctl is-active "rlinf-$service.service" 2>/dev/null) || true
    fi
    printf '%s %s\n' "$service" "${state:-unknown}"
  done
  if [[ -n $OVERLAY_IP ]]; then ip -4 -brief address show dev "$DEVICE" 2>/dev/null || true; fi
}

down() {
  bash "$work/prepare.sh" down <<<"HOST=$NAME" >/dev/null
  tell "$NAME: left the network $NETWORK; nothing of it is left here but this file, which holds a secret: delete it."
}
