#!/usr/bin/env bash
# remove.sh COMMAND LOGIN HOST: removes all that the scripts of this project have made, and with it the overlay, over
# which it was asked for. Run as root by prepare.sh, from a folder of its own, which goes as well.
#
# COMMAND and LOGIN are processes: what asked for it, and the sshd that serves it. The other side may keep connections
# open until all is destroyed, so the end of LOGIN is waited for no longer than the command's result may take.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"

# shellcheck disable=SC2317 # called by wait_for
has_ended() { [[ ! -e /proc/$1 ]]; }

# hang_up ADDRESS: ends the logins at an address that is gone, which would learn of it only after hours.
hang_up() {
  local pid
  command -v ss >/dev/null || return 0
  ss -Htnp state established src "$1" | grep -o 'pid=[0-9]*' | sort -u | while IFS= read -r pid; do
    pid=${pid#pid=}
    if [[ $(cat "/proc/$pid/comm" 2>/dev/null) == sshd* ]]; then kill "$pid" 2>/dev/null || true; fi
  done
}

main() {
  local command=$1 login=$2 address
  HOST=$3
  cd /
  wait_for 60 has_ended "$command" || true
  wait_for 5 has_ended "$login" || true
  address=$(sed -n 's|^ipv4 = "\([0-9.]*\)/.*|\1|p' "$ETC/easytier.toml" 2>/dev/null || true)
  bash "$here/prepare.sh" down <<<"HOST=$HOST"
  if [[ -n $address ]]; then hang_up "$address" || true; fi
  rm -rf -- "$here"
  exit
}

main "$@"
