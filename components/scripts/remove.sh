#!/usr/bin/env bash
# remove.sh PROCESS HOST: removes all that the scripts of this project have made, once a process has ended: the login
# that asked for it. Run as root from a folder of its own, which goes as well. PROCESS 1 or less: at once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"

# shellcheck disable=SC2317 # called by wait_for
has_ended() { [[ ! -e /proc/$login ]]; }

main() {
  login=$1
  cd /
  # A login that does not end is no reason to stay.
  ((login <= 1)) || wait_for 60 has_ended || true
  bash "$here/prepare.sh" down <<<"HOST=$2"
  rm -rf -- "$here"
  exit
}

main "$@"
