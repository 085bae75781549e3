#!/usr/bin/env bash
# watch-ray.sh RAY: ends the process RAY, `ray start --block`, of which this is a child, once its raylet is gone, or on
# the head its gcs_server.
#
# Ray itself sees to children that crash. One that has ended with 0 or by SIGTERM it takes for one that was told to, and
# goes on as a node that is none, which no service manager can know (`start` in ray/scripts/scripts.py, Ray 2.60.0). And
# while it starts, it asks the head for the node and not the raylet whether it lives, until RAY_raylet_start_wait_time_s.
# A stop that was asked for is Ray's to see to: it then ends the raylet, the others, and itself within GRACE.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"

readonly ray=$1
# Seconds in which Ray may end after one of them has: it sees a crash within one, and gives each process one to end.
readonly GRACE=6
# Process id → when it was started; only both together tell a process from a later one of that number.
declare -A watched=() names=()
name='' state='' parent='' started=''

main() {
  local pid
  until has_raylet; do
    find_processes
    check
    sleep 1
  done
  # What was started just before the raylet may have been looked for too early.
  find_processes
  while :; do
    check
    sleep 1
  done
}

has_raylet() { [[ " ${names[*]-} " == *" raylet "* ]]; }

# about PID: sets name, state, parent and started; false where it has ended (proc(5), /proc/PID/stat).
about() {
  local line
  local -a fields
  { read -r line <"/proc/$1/stat"; } 2>/dev/null || return
  name=${line#*\(}
  name=${name%)*}
  read -r -a fields <<<"${line##*) }"
  state=${fields[0]} parent=${fields[1]} started=${fields[19]}
}

# find_processes: notes those of Ray's. Any other Ray on the machine has other ancestors.
find_processes() {
  local entry
  for entry in /proc/[0-9]*; do
    about "${entry#/proc/}" || continue
    case $name in
      raylet | gcs_server) note "${entry#/proc/}" ;;
    esac
  done
}

# note PID: the process that `about` has told of, if it is Ray's own. Whatever a raylet forks is called so for a moment.
note() {
  local its_name=$name its_start=$started
  while [[ $parent != "$ray" ]]; do
    about "$parent" && [[ $name != "$its_name" ]] || return 0
  done
  watched[$1]=$its_start names[$1]=$its_name
}

lives() { about "$1" && [[ $started == "${watched[$1]}" && $state != [ZX] ]]; }

# is_there: Ray still runs. A process has a parent as long as that lives, and then another.
is_there() { about "$BASHPID" && [[ $parent == "$ray" ]]; }

check() {
  local pid
  is_there || exit 0
  for pid in "${!watched[@]}"; do
    lives "$pid" || end "${names[$pid]}"
  done
}

end() {
  local deadline=$((SECONDS + GRACE))
  while ((SECONDS < deadline)); do
    sleep 0.2
    is_there || exit 0
  done
  say "the $1 has ended and Ray has not: ending Ray, so that it is started anew"
  kill -KILL "$ray"
  exit 0
}

main
