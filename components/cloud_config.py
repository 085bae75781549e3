"""What cloud-init does on the first boot of an instance, as a #cloud-config. Pure, and without Pulumi."""

from __future__ import annotations

import json
from typing import Any

PACKAGES = ("curl", "nftables", "unzip")
"""What the scripts need and a cloud image may lack."""


def first_boot(name: str) -> dict[str, Any]:
    """What is no secret of it: the host's name, and what it lacks.

    Args:
        name: of the host.
    """
    return {"hostname": name, "preserve_hostname": False, "manage_etc_hosts": True, "packages": list(PACKAGES)}


def user_data(first_boot: dict[str, Any], private_key: str, public_key: str) -> str:
    """The user data, whose host key is the only one that the instance will have.

    cloud-init installs it before sshd starts, so that the first login is to a host that is known. The text is JSON,
    which is YAML, too: nothing needs quoting.

    Args:
        first_boot: what `first_boot` returned when the instance was launched.
        private_key: OpenSSH's format.
        public_key: type and key.
    """
    keys = {"ed25519_private": private_key, "ed25519_public": public_key}
    document: dict[str, Any] = {**first_boot, "ssh_deletekeys": True, "ssh_genkeytypes": [], "ssh_keys": keys}
    return "#cloud-config\n" + json.dumps(document, sort_keys=True) + "\n"
