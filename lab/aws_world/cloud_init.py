"""What an instance has on its disk before its first boot: an address, and a seed for the real cloud-init.

cloud-init is in the image of all lab hosts, switched off by a file that is taken away here. It finds user data, key
pair and name in a NoCloud seed; there is no metadata service.
"""

from __future__ import annotations

import json
import os
import stat
import uuid
from pathlib import Path

from lab import disk
from lab.aws_world.plan import Instance

GATEWAY = "169.254.0.1"
"""The router, for every instance. An instance knows no neighbours, so that all it sends passes the router."""

SWITCHED_OFF = "etc/cloud/cloud-init.disabled"
_SEED = "var/lib/cloud/seed/nocloud"


def host_name(instance: Instance) -> str:
    """What AWS calls it: `ip-172-31-0-4`."""
    return f"ip-{instance.guest.private.replace('.', '-')}"


def write_root(root: Path, instance: Instance) -> None:
    """Writes the upper layer of an instance's root filesystem."""
    root.mkdir(mode=0o755)
    name = host_name(instance)
    disk.write(root / "etc/hostname", f"{name}\n")
    disk.write(root / "etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {name}\n::1 localhost ip6-localhost\n")
    disk.write(root / "etc/machine-id", f"{uuid.uuid4().hex}\n", mode=0o444)
    disk.write(root / disk.NETWORK_FILE, _network_file(instance))
    disk.write(root / "etc/cloud/cloud.cfg.d/90-lab.cfg", json.dumps(_settings(instance)) + "\n")
    disk.write(root / "etc/cloud/ds-identify.cfg", "policy: enabled\n")
    disk.write(root / _SEED / "meta-data", json.dumps(_meta_data(instance)) + "\n")
    data = root / _SEED / "user-data"
    data.write_bytes(instance.user_data)
    data.chmod(0o600)
    # What overlayfs takes for "there is no such file".
    os.mknod(root / SWITCHED_OFF, stat.S_IFCHR, os.makedev(0, 0))


def _network_file(instance: Instance) -> str:
    return "\n".join(
        [
            "[Match]", "Name=host0", "", "[Network]", f"Address={instance.guest.private}/32", "LinkLocalAddressing=no",
            "", "[Route]", f"Gateway={GATEWAY}", "GatewayOnLink=yes", f"PreferredSource={instance.guest.private}", "",
        ]
    )  # fmt: skip


def _settings(instance: Instance) -> dict[str, object]:
    user = {
        "name": instance.user,
        "lock_passwd": True,
        "gecos": instance.user,
        "sudo": ["ALL=(ALL) NOPASSWD:ALL"],
        "shell": "/bin/bash",
    }
    return {
        "datasource_list": ["NoCloud"],
        "network": {"config": "disabled"},
        "system_info": {"default_user": user},
        "ssh_genkeytypes": ["ed25519", "ecdsa"],
        "apt_preserve_sources_list": True,
        "manage_etc_hosts": False,
        # The image has but the one it is made with.
        "locale": False,
        **({"runcmd": list(instance.first_boot)} if instance.first_boot else {}),
    }


def _meta_data(instance: Instance) -> dict[str, object]:
    keys = [instance.public_key.strip()] if instance.public_key else []
    return {"instance-id": instance.name, "local-hostname": host_name(instance), "public-keys": keys}
