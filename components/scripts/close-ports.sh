#!/usr/bin/env bash
# close-ports.sh [PID]: keeps other networks off Ray. Run as root by rlinf-ray.service, in its control group, before
# Ray; or with a process of that service, whose rules are gone.
#
# Ray's own ports are pinned, and ray.nft names them. What workers listen on besides (rendezvous of RLinf, Gloo and
# NCCL take any free port, on all interfaces) is told by whose it is: the kernel finds the socket that a packet is
# for, and the control group it was made in. A group is another one after each start, so the rule is made here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=components/scripts/lib.sh
. "$here/lib.sh"

# Version 2 is mounted here, or, beside version 1, in `unified`; nft takes paths from the first.
group_of() {
  local group folder
  group=$(sed -n 's/^0:://p' "/proc/$1/cgroup")
  [[ $group == */rlinf-ray.service ]] || return 1
  for folder in "" unified; do
    if [[ -e /sys/fs/cgroup/$folder$group/cgroup.procs ]]; then
      printf %s "$folder$group"
      return
    fi
  done
  return 1
}

main() {
  local group levels
  if group=$(group_of "$1"); then
    levels=${group#unified}
    levels=${levels//[^\/]/}
    # Answers to what a worker itself has asked come in by the same socket, and pass.
    if {
      cat "$ETC/ray.nft"
      printf 'add rule inet rlinf_cloud_edge input ct direction original socket cgroupv2 level %d "%s" drop\n' \
        "${#levels}" "${group#/}"
    } | nft -f -; then
      return
    fi
  fi
  nft -f "$ETC/ray.nft"
  say "only Ray's own ports are closed to other networks, not those that its workers open: that takes control groups of version 2, nft 0.9.9 and Linux 5.13"
}

main "${1:-self}"
