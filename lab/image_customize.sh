#!/usr/bin/env bash
# Turns a fresh Debian root filesystem into the common part of all lab hosts, as a cloud image would be.
# Called by mmdebstrap with the root as its only argument. What differs from host to host is not done here.
set -euo pipefail

root="$1"

chroot "$root" useradd --create-home --uid 1000 --shell /bin/bash debian
install -m 0440 /dev/stdin "$root/etc/sudoers.d/90-cloud-user" <<<'debian ALL=(ALL) NOPASSWD:ALL'

install -m 0644 /dev/stdin "$root/etc/ssh/sshd_config.d/10-keys-only.conf" <<'SSHD'
PermitRootLogin no
PasswordAuthentication no
KbdInteractiveAuthentication no
SSHD
# Every host gets its own.
rm -f "$root"/etc/ssh/ssh_host_*

# No name server is within reach. Without one, and without a hosts file, even "localhost" would be asked of one.
printf '# This host has no name server.\n' >"$root/etc/resolv.conf"

# Only a disk that takes this file away has it at work (aws_world/cloud_init.py).
touch "$root/etc/cloud/cloud-init.disabled"

systemctl --root "$root" --quiet enable systemd-networkd.service
systemctl --root "$root" --quiet mask systemd-networkd-wait-online.service
# These ask the Internet, look after disks that a lab host does not have, or write files at times of their own, which
# the tests would take for somebody's leavings.
systemctl --root "$root" --quiet disable \
  apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer
systemctl --root "$root" --quiet mask systemd-tmpfiles-clean.timer
# Nobody sits at a console. A login prompt that comes up late in a loaded boot, and makes /run/agetty.reload, is the same.
systemctl --root "$root" --quiet mask getty.target getty@.service console-getty.service container-getty@.service
