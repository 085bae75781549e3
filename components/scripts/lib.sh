# shellcheck shell=bash disable=SC2034,SC2154 # what is set here is used where it is sourced, and `here` comes from there
# What the scripts share. Sourced by them after `set -euo pipefail`, with their folder in `here`.
#
# Progress goes to standard error, the one line of result to standard output. Paths and names here are the only
# ones this project owns on a host.

PATH=$PATH:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL=C

readonly OPT=/opt/rlinf-cloud-edge
readonly ETC=/etc/rlinf-cloud-edge
readonly VAR=/var/lib/rlinf-cloud-edge
readonly RUN=/run/rlinf-cloud-edge
readonly LOCK=/run/rlinf-cloud-edge.lock

# What to do once a fault is put right; join.sh, which an owner runs by hand, says otherwise.
readonly AGAIN=${RLINF_CLOUD_EDGE_AGAIN:-run pulumi up again}

HOST=this-host

# The service manager is chosen here, once; whoever sources this need not know which it is.
# shellcheck source=components/scripts/systemd.sh source=components/scripts/supervised.sh
if [[ -d /run/systemd/system ]]; then . "$here/systemd.sh"; else . "$here/supervised.sh"; fi

# Whoever listens may be gone: an interrupted update, a cut connection. The work is not broken off then in the middle of
# anything; but where the line of result can't be told at the end, the step has failed, and undoes itself like any other
# that has: nothing is recorded of it.
trap '' PIPE

say() { printf '%s\n' "$*" >&2 2>/dev/null || true; }

fail() {
  printf '%s: %s\n' "$HOST" "$*" >&2
  exit 1
}

# read_settings NAME...: standard input, KEY=value a line, becomes variables. A name that is not given is refused.
read_settings() {
  local line name known
  while IFS= read -r line || [[ -n $line ]]; do
    known=false
    for name in HOST REPAIR SCRIPTS "$@"; do
      if [[ ${line%%=*} == "$name" ]]; then
        printf -v "$name" '%s' "${line#*=}"
        known=true
      fi
    done
    $known || fail "setting ${line%%=*} is not known; this is a fault of the program, not of yours"
  done
}

# one_at_a_time: waits until no other script of this project runs on the host.
one_at_a_time() {
  [[ -z ${RLINF_CLOUD_EDGE_LOCKED:-} ]] || return 0
  # Whoever had the lock may have removed everything, its file included: then it is another file by now.
  until [[ $LOCK -ef /proc/self/fd/9 ]]; do
    exec 9>"$LOCK"
    flock -w 900 9 || fail "another update of this host has been running for 15 minutes; wait for it, or end it, and $AGAIN"
  done
  export RLINF_CLOUD_EDGE_LOCKED=1
}

# put PATH MODE OWNER: standard input becomes the file, in one step and never readable by others in between.
put() {
  local new
  new=$(mktemp "$1.XXXXXX")
  cat >"$new"
  chown "$3" "$new"
  chmod "$2" "$new"
  mv -f "$new" "$1"
}

# note_written STEP FILE...: notes what a step has written, so that `status.sh` sees what was changed by hand since.
note_written() {
  local list=$VAR/written/$1
  shift
  install -d -m 0700 "$VAR/written"
  put "$list" 0600 root:root < <(sha256sum -- "$@")
}

# wait_for SECONDS COMMAND...: true as soon as the command is, false after that time.
wait_for() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.2
  done
}

# quoted VALUE: as a double-quoted string that both systemd and sh read back as it was.
quoted() {
  local value=$1
  value=${value//\\/\\\\}
  value=${value//\"/\\\"}
  value=${value//\$/\\\$}
  value=${value//\`/\\\`}
  printf '"%s"' "$value"
}

has_address() { [[ $(ip -4 -o address show dev "$1" 2>/dev/null) == *" inet $2/"* ]]; }

# shellcheck disable=SC2016 # expanded by the inner bash
port_open() { timeout 2 bash -c 'exec 3<>"/dev/tcp/$1/$2"' _ "$1" "$2" 2>/dev/null; }

# payload_passes ADDRESS PORT: 16 KiB, a dozen MTUs, come back unchanged from that echo service.
payload_passes() {
  # shellcheck disable=SC2016 # expanded by the inner bash
  timeout 3 bash -c '
    exec 3<>"/dev/tcp/$1/$2"
    payload=$(head -c 12288 /dev/urandom | base64 -w 0)
    printf %s "$payload" >&3
    [[ $(head -c 16384 <&3) == "$payload" ]]' _ "$1" "$2" 2>/dev/null
}

# ray_version PYTHON: reads the package's metadata, since importing Ray takes seconds.
ray_version() { "$1" -I -c 'import importlib.metadata as m; print(m.version("ray"))' 2>/dev/null; }

# running_as_configured SERVICE FILE...: active, and started from just these files.
running_as_configured() {
  local service=$1
  shift
  is_active "$service" &&
    [[ $(cat "$RUN/$service.started" 2>/dev/null) == "$(cat -- "$@" 2>/dev/null | sha256sum)" ]]
}

# start SERVICE FILE...: enabled, and running from just these files; what already is so is left alone.
start() {
  local service=$1
  enable "$service"
  if running_as_configured "$@"; then
    say "$HOST: $service runs as configured"
    return
  fi
  say "$HOST: starting $service"
  restart "$service" || fail "$service does not start: $(last_log "$service")"
}

# An update that fails must leave what was there before: Pulumi keeps the old settings for such a host, and would see
# nothing to do once they are back. `remember` notes files of a service before they are written; `bring_back`, on a
# failure, makes them as they were and starts the service from them.

# remember SERVICE FILE...: keeps copies of files as they are, absent ones included.
remember() {
  remembered_service=$1
  shift
  remembered_files=("$@")
  remembered=$(mktemp -d)
  local index
  for index in "${!remembered_files[@]}"; do
    cp -p -- "${remembered_files[index]}" "$remembered/$index" 2>/dev/null || true
  done
}

bring_back() {
  local index changed=false
  for index in "${!remembered_files[@]}"; do
    cmp -s -- "$remembered/$index" "${remembered_files[index]}" && continue
    changed=true
    if [[ -e $remembered/$index ]]; then
      cp -p -- "$remembered/$index" "${remembered_files[index]}"
    else
      rm -f -- "${remembered_files[index]}"
    fi
  done
  $changed || return 0
  say "$HOST: going back to the settings before this update"
  reload_units
  restart "$remembered_service" || true
}

forget() { rm -rf -- "${remembered:?}"; }
