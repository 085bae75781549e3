#!/usr/bin/env bash
# status.sh: what runs on this host, as KEY=value lines on standard output; changes nothing and tells no secret.
#
# Runs as root; `script/doctor` compares what it says with what was planned. It tells of processes rather than files:
# a file that nobody has started from yet is no news.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"

readonly EASYTIER=rlinf-easytier.service RAY=rlinf-ray.service

main() {
  printf 'SERVICES=%s\n' "$SERVICE_MANAGER"
  printf 'ADDRESSES=%s\n' "$(ip -4 -o address show | awk '{ print $2 "=" $4 }' | tr '\n' ' ')"
  printf 'CHANGED=%s\n' "$(changed_files | tr '\n' ' ')"
  if [[ -e $UNITS/$EASYTIER ]]; then tell_easytier; fi
  if [[ -e $UNITS/$RAY ]]; then tell_ray; fi
}

# changed_files: those that are no longer what `pulumi up` wrote.
changed_files() {
  local list
  for list in "$VAR"/written/*; do
    [[ -e $list ]] || continue
    # With --quiet, only the files that differ or are gone are named.
    { sha256sum --check --quiet "$list" 2>/dev/null || true; } | sed 's/: FAILED.*//'
  done
}

tell_easytier() {
  local portal
  tell_service EASYTIER "$EASYTIER"
  printf 'ECHO_STATE=%s\n' "$(state_of "${ECHO_UNITS[0]}")"
  portal=$(sed -n 's/^ET_RPC_PORTAL=//p' "$ETC/easytier.env" 2>/dev/null || true)
  # Its `node` would print the network secret; `peer` does not.
  printf 'PEERS=%s\n' "$(timeout 5 "$OPT/easytier/easytier-cli" -p "$portal" -o json peer 2>/dev/null | tr -d '\n' || true)"
}

tell_ray() {
  local pid owner
  local -a command
  tell_service RAY "$RAY"
  if nft list table inet rlinf_cloud_edge >/dev/null 2>&1; then printf 'PORTS=closed\n'; else printf 'PORTS=open\n'; fi
  pid=$(main_pid "$RAY")
  mapfile -d '' -t command 2>/dev/null <"/proc/$pid/cmdline" || return 0
  # Until Ray has its address and its head, the service is the script that waits for them.
  [[ ${command[*]} == *"ray start"* ]] || return 0
  owner=$(stat --format=%U "/proc/$pid")
  printf 'RANK=%s\n' "$(variable "$owner" "$pid" RLINF_NODE_RANK)"
  printf 'RAY_DEVICE=%s\n' "$(variable "$owner" "$pid" RLINF_COMM_NET_DEVICES)"
  local word
  for word in "${command[@]}"; do
    case $word in --node-ip-address=*) printf 'RAY_IP=%s\n' "${word#*=}" ;; esac
  done
  runuser -u "$owner" -- timeout 10 "${command[0]}" -I -B -c 'import importlib.metadata as m, platform
print(f"RAY_VERSION={m.version('\''ray'\'')}\nPYTHON_VERSION={platform.python_version()}")' 2>/dev/null || true
  if [[ " ${command[*]} " == *" --head "* ]]; then
    printf 'RAY_NODES=%s\n' "$(timeout 15 "$here/launch.sh" python -B "$here/ray_nodes.py" 2>/dev/null || true)"
  fi
}

# tell_service NAME SERVICE: its state, and whether it comes back at a boot.
tell_service() {
  printf '%s_STATE=%s\n' "$1" "$(state_of "$2")"
  printf '%s_BOOT=%s\n' "$1" "$(boot_of "$2")"
}

# variable OWNER PID NAME: from the environment of a running process, which in a container not even root may read.
variable() { runuser -u "$1" -- cat "/proc/$2/environ" 2>/dev/null | tr '\0' '\n' | sed -n "s/^$3=//p"; }

main
