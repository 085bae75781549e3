#!/usr/bin/env bash
# note-start.sh SERVICE FILE...: notes what a service starts from, so that a later update sees whether it still runs
# with the files that are there. Called by the units before they start.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"

service=$1
shift
install -d -m 0755 "$RUN"
put "$RUN/$service.started" 0644 root:root < <(cat -- "$@" | sha256sum)
