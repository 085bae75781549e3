#!/usr/bin/env bash
# launch.sh COMMAND...: runs a command on the head in the environment of Ray itself, as the account Ray runs as.
#
# RLinf broadcasts every variable in which the launcher's environment differs from that of `ray start` to all nodes
# (`Cluster` in RLinf 0.3.0), so nothing of the login shell may come along.
set -euo pipefail
: "${1:?usage: launch.sh COMMAND...}"
settings=/etc/rlinf-cloud-edge/ray.env
owner=$(stat --format=%U "$settings")
if [[ $(id -un) != "$owner" ]]; then
  if [[ $(id -u) -eq 0 ]]; then exec runuser -u "$owner" -- "$0" "$@"; fi
  exec sudo -n -u "$owner" -- "$0" "$@"
fi
# shellcheck disable=SC2016 # expanded by the inner bash
exec env -i HOME="$(getent passwd "$owner" | cut -d : -f 6)" USER="$owner" LOGNAME="$owner" SHELL=/bin/bash LANG="${LANG:-C.UTF-8}" \
  bash -c 'set -a && . "$0" && set +a && exec "$@"' "$settings" "$@"
