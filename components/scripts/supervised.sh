# shellcheck shell=bash disable=SC2034,SC2154 # what is set here is used where it is sourced, and `here` comes from there
# Services where there is no systemd, as in most containers: the same units, run by supervise.py. Sourced by lib.sh.
# What each function is for stands in systemd.sh.

readonly SERVICE_MANAGER=supervised
readonly UNITS=$ETC/services
readonly ECHO_UNITS=(rlinf-echo.service)
readonly HOW_TO_SEE_LOGS="tail $VAR/log/rlinf-*.log"

# The checks come without it, and ask the installed one.
supervisor=$here/supervise.py
[[ -e $supervisor ]] || supervisor=$OPT/libexec/supervise.py

# Nothing of the login's environment reaches the supervisor, or what it runs.
supervise() { env -i PATH="$PATH" python3 -B -E -s "$supervisor" "$@"; }

reload_units() { :; }

# Nothing starts at the boot of a container but what its image says; prepare.sh warns of that.
enable() { :; }

# Asking makes a record; where there is none, nothing was ever started.
is_active() { [[ -e $RUN/$1.record ]] && supervise active "$1" 2>/dev/null; }

has_failed() { ! supervise alive "$1"; }

# Where somebody has deleted the program of a running supervisor, its lock on the record still tells of it.
is_present() {
  [[ -e $RUN/$1.record ]] && { supervise present "$1" 2>/dev/null || ! flock -s -n "$RUN/$1.record" true; }
}

restart() { supervise stop "$1" && supervise start "$1"; }

stop() { supervise stop "$1"; }

last_log() { tail -n 12 "$VAR/log/$1.log" 2>/dev/null || true; }

invocation() { supervise show "$1" | sed -n 's/^InvocationID=//p'; }

state_of() { if is_active "$1"; then echo active; elif has_failed "$1"; then echo inactive; else echo activating; fi; }

boot_of() { echo never; }

main_pid() { supervise show "$1" | sed -n 's/^MainPID=//p'; }

detached() { setsid --fork bash "$@" </dev/null >/dev/null 2>&1; }

remove_service() {
  local unit
  for unit in "$@"; do
    if [[ -e $RUN/$unit.record ]]; then supervise stop "$unit"; fi
    rm -f -- "${UNITS:?}/$unit" "$RUN/$unit.record" "$VAR/log/$unit.log" "$VAR/log/$unit.log.old"
  done
}
