# shellcheck shell=bash disable=SC2034 # what is set here is used where it is sourced
# Services under systemd. Sourced by lib.sh, where systemd runs; supervised.sh is its counterpart.

readonly SERVICE_MANAGER=systemd
readonly UNITS=/etc/systemd/system
# The first is what is started.
readonly ECHO_UNITS=(rlinf-echo.socket rlinf-echo@.service)
readonly HOW_TO_SEE_LOGS="journalctl -u rlinf-easytier -u rlinf-ray"

# reload_units: after unit files have changed.
reload_units() { systemctl daemon-reload; }

# enable SERVICE: it starts at every boot.
enable() { systemctl enable --quiet "$1"; }

# is_active SERVICE: it runs.
is_active() { systemctl is-active --quiet "$1" 2>/dev/null; }

# is_present SERVICE: processes of it may be there, whether it runs, is being ended, or is about to be started again.
is_present() { [[ $(state_of "$1") != ?(inactive|failed|unknown) ]]; }

# has_failed SERVICE: it does not run and will not by itself.
has_failed() { systemctl is-failed --quiet "$1"; }

# restart SERVICE: true once it is started.
restart() { systemctl restart "$1"; }

stop() { systemctl stop "$1"; }

last_log() { journalctl --unit="$1" --lines=12 --output=cat --no-pager 2>/dev/null | tail -n 12 || true; }

# invocation SERVICE: what tells this start of it from others.
invocation() { systemctl show --property=InvocationID --value "$1"; }

# state_of SERVICE: active, activating, deactivating, inactive or failed.
state_of() { systemctl is-active "$1" 2>/dev/null || true; }

# boot_of SERVICE: enabled where it starts at every boot.
boot_of() { systemctl is-enabled "$1" 2>/dev/null || true; }

# main_pid SERVICE: process id; 0 where it does not run.
main_pid() { systemctl show --property=MainPID --value "$1"; }

# detached SCRIPT ARGUMENT...: runs on when this login has ended.
detached() {
  setsid --fork systemd-run --quiet --collect --scope --unit=rlinf-cloud-edge-removal bash "$@" \
    </dev/null >/dev/null 2>&1
}

# remove_service UNIT...: stopped, disabled and forgotten; it is no fault if it never was.
remove_service() {
  local unit
  for unit in "$@"; do
    systemctl disable --now --quiet "$unit" 2>/dev/null || true
    systemctl stop "$unit" 2>/dev/null || true
    rm -rf -- "${UNITS:?}/$unit" "${UNITS:?}/$unit.d"
  done
  systemctl daemon-reload
  systemctl reset-failed "$@" 2>/dev/null || true
}
