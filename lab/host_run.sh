#!/usr/bin/env bash
# Switches a lab host on, and on again whenever it reboots, until it is powered off or killed.
#
#   unshare --mount host_run.sh NAME HOSTNAME IMAGE NAMESPACE BRIDGE SHARED CGROUP...
#
# in the host's folder, which has its disk (disk.img). NAME is the machine's name, IMAGE the base root filesystem,
# NAMESPACE the file of the network namespace that has BRIDGE, SHARED the folder seen as /opt/rlinf, and each CGROUP
# a folder of the host's control group. All mounts are in this script's own mount namespace: they end with it.
set -euo pipefail

name="$1" hostname="$2" image="$3" namespace="$4" bridge="$5" shared="$6"
shift 6

join() { # GROUP CGROUP...: moves this shell into GROUP below each CGROUP
  local group="$1" cgroup
  shift
  for cgroup; do
    echo "$BASHPID" >"$cgroup/$group/cgroup.procs"
  done
}

join runner "$@"

mkdir -p disk root
mount -o loop disk.img disk
mount -t overlay overlay -o "lowerdir=$image,upperdir=disk/upper,workdir=disk/work" root
# systemd-nspawn leaves folders behind here when it is killed.
mkdir -p /run/systemd/nspawn
mount -t tmpfs -o mode=0755 lab /run/systemd/nspawn

while true; do
  status=0
  (
    join machine "$@"
    export SYSTEMD_NSPAWN_LOCK=0
    exec nsenter --net="$namespace" systemd-nspawn --quiet --boot --directory=root --machine="$name" \
      --hostname="$hostname" --register=no --keep-unit --network-bridge="$bridge" \
      --capability=CAP_NET_ADMIN,CAP_NET_RAW --bind=/dev/net/tun --bind-ro="$shared:/opt/rlinf" \
      --resolv-conf=off --timezone=off --link-journal=no --console=read-only
  ) || status=$?
  # 133 is how systemd-nspawn says that the machine wants to be started again.
  ((status == 133)) || exit "$status"
done
