#!/usr/bin/env bash
# run-ray.sh: the body of rlinf-ray.service. Waits for the overlay address and the head, then becomes
# `ray start --block`, watched by watch-ray.sh.
#
# An address looked up too early would be empty, and Ray would silently take another network's.
set -euo pipefail
# lib.sh extends PATH and sets LC_ALL for itself; workers get just what ray.env says.
path=$PATH
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"

# shellcheck disable=SC2034
OVERLAY_IP='' DEVICE='' RAY_ARGUMENTS='' JOIN=''
read_settings OVERLAY_IP DEVICE RAY_ARGUMENTS JOIN <"$ETC/ray.start"
[[ -n $OVERLAY_IP ]] || fail "no overlay address in $ETC/ray.start"

waited=0
until has_address "$DEVICE" "$OVERLAY_IP"; do
  ((waited++ % 10)) || say "waiting for $OVERLAY_IP on $DEVICE"
  sleep 1
done
# A worker that starts without its head gives up after half a minute, and that again and again: the wait is here.
head=''
for argument in $RAY_ARGUMENTS; do
  if [[ $argument == --address=* ]]; then head=${argument#--address=}; fi
done
waited=0
until [[ -z $head ]] || port_open "${head%:*}" "${head##*:}"; do
  ((waited++ % 10)) || say "waiting for the head, $head"
  sleep 1
done
"$here/watch-ray.sh" "$$" &
unset LC_ALL
PATH=$path
read -r -a arguments <<<"$RAY_ARGUMENTS"
exec ray start --block --node-ip-address="$OVERLAY_IP" --temp-dir="$VAR/ray" --disable-usage-stats "${arguments[@]}"
