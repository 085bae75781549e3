"""The settings of a Pulumi stack for a lab: the `cluster` object, as a user would write it by hand.

Pure: keys and digests are given to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from lab.toolchain import versions
from lab.topology import MIRROR_ADDRESS, LabHost, Topology

PYTHON = "3.11"
"""The Python of the managed Ray environment; the wheels on the mirror are for it."""


def cluster(
    lab: Topology, host_keys: Mapping[str, str], *, easytier_sha256: str, uv_sha256: str, architecture: str
) -> dict[str, Any]:
    """The `cluster` object.

    Args:
        lab: whose hosts it names.
        host_keys: host name → public host key, type and key.
        easytier_sha256: of the EasyTier archive on the mirror, hexadecimal.
        uv_sha256: of the uv archive on the mirror, hexadecimal.
        architecture: of the hosts, as `uname -m` says.
    """

    def ssh(host: LabHost) -> dict[str, str]:
        jump = {"jump": host.jump} if host.jump is not None else {}
        return {"address": host.address, **jump, "host_key": host_keys[host.name]}

    def entry(host: LabHost) -> dict[str, Any]:
        public = {"public_address": host.address} if host.role == "cloud" else {}
        return {"name": host.name, "overlay_ip": host.overlay_ip, **public, "ssh": ssh(host)}

    bootstrap = lab.host("bootstrap")
    mirror = f"http://{MIRROR_ADDRESS}"
    component = {"placement": "0-0"}
    # A lab may have no edge: everything then runs in the cloud group.
    far = "edge" if lab.edges else "cloud"
    return {
        "cluster": {
            "ssh": {"user": "debian"},
            "overlay": {
                "network": "rlinf-cloud-edge",
                "cidr": "10.10.0.0/24",
                "device": "et0",
                "port": 11010,
                "easytier": {
                    "version": versions.EASYTIER,
                    "url": f"{mirror}/easytier/v{{version}}/easytier-linux-{{arch}}-v{{version}}.zip",
                    "sha256": {architecture: easytier_sha256},
                },
            },
            "bootstrap": {"overlay_ip": bootstrap.overlay_ip, "ssh": ssh(bootstrap)},
            "cloud": [entry(host) for host in lab.hosts if host.role == "cloud"],
            "edges": [entry(host) for host in lab.hosts if host.role == "edge"],
            "ray": {
                "version": versions.RAY,
                "python": PYTHON,
                "uv": {
                    "version": versions.UV,
                    "url": f"{mirror}/uv/{{version}}/uv-{{arch}}-unknown-linux-musl.tar.gz",
                    "sha256": {architecture: uv_sha256},
                },
                "find_links": f"{mirror}/wheels/",
            },
            "rlinf": {
                "component_placement": {
                    "actor": {"node_group": "cloud", **component},
                    "rollout": {"node_group": far, **component},
                    "env": {"node_group": far, **component},
                }
            },
        }
    }


def render(settings: Mapping[str, Any]) -> str:
    """The settings as YAML."""
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.width = 200
    out = StringIO()
    yaml.dump(settings, out)  # pyright: ignore[reportUnknownMemberType]  # ruamel.yaml leaves its types open
    return out.getvalue()
