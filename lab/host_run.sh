#!/usr/bin/env bash
# Switches a lab host on, and on again whenever it reboots, until it is powered off or killed.
#
#   unshare --mount host_run.sh NAME HOSTNAME KIND IMAGE NAMESPACE BRIDGE SHARED CGROUP...
#
# in the host's folder, which has its disk (disk.img). NAME is the machine's name, KIND how it runs (topology.py),
# IMAGE the base root filesystem, NAMESPACE the file of the network namespace that has BRIDGE, SHARED the folder seen
# as /opt/rlinf, and each CGROUP a folder of the host's control group. All mounts are in this script's own mount
# namespace: they end with it.
set -euo pipefail

name="$1" hostname="$2" kind="$3" image="$4" namespace="$5" bridge="$6" shared="$7"
shift 7

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

# What Docker's default lacks of what systemd-nspawn gives.
docker_lacks=CAP_SYS_ADMIN,CAP_SYS_PTRACE,CAP_SYS_RESOURCE,CAP_SYS_NICE,CAP_SYS_BOOT,CAP_SYS_TTY_CONFIG
docker_lacks+=,CAP_DAC_READ_SEARCH,CAP_IPC_OWNER,CAP_LEASE,CAP_LINUX_IMMUTABLE,CAP_NET_BROADCAST,CAP_AUDIT_CONTROL
network=--capability=CAP_NET_ADMIN,CAP_NET_RAW
tun=(--bind=/dev/net/tun)
if [[ $kind == container-no-tun ]]; then tun=(); fi
case $kind in
  systemd) how=(--boot "$network") ;;
  container | container-no-tun) how=(--drop-capability="$docker_lacks" "$network") ;;
  container-no-cap) how=(--drop-capability="$docker_lacks,CAP_NET_ADMIN") ;;
esac
command=()
if [[ $kind != systemd ]]; then
  # Process 1 is a small init that reaps orphans, as with `docker run --init`; what it starts is sshd.
  how+=(--as-pid2)
  start='mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e'
  # systemd-nspawn makes the device unasked; Docker does not.
  if [[ $kind == container-no-tun ]]; then start="rm -r /dev/net && $start"; fi
  command=(/bin/sh -c "$start")
fi

while true; do
  status=0
  (
    join machine "$@"
    export SYSTEMD_NSPAWN_LOCK=0
    exec nsenter --net="$namespace" systemd-nspawn --quiet --directory=root --machine="$name" \
      --hostname="$hostname" --register=no --keep-unit --network-bridge="$bridge" "${how[@]}" "${tun[@]}" \
      --bind-ro="$shared:/opt/rlinf" --resolv-conf=off --timezone=off --link-journal=no --console=read-only \
      "${command[@]}"
  ) || status=$?
  if [[ -e restart ]]; then
    # Someone ended this container to have it start again.
    rm restart
    continue
  fi
  # 133 is how systemd-nspawn says that the machine wants to be started again.
  ((status == 133)) || exit "$status"
done
