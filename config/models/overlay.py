"""The EasyTier network, and EasyTier's own flags by name.

The flags are those of `FlagsInConfig` in EasyTier 2.6.4 (`easytier/src/proto/common.proto`). EasyTier passes over a
flag that it does not know without a word, so each is checked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import ClassVar, Literal

from pydantic import Field

from config.models.base import DeviceName, Integer, Line, Model, Port, Truth
from config.models.release import EasyTierRelease

_SET_HERE = "this program sets this flag itself"
_LISTENERS_ARE_TCP_AND_UDP = "the hosts of a cluster listen on TCP and UDP only"


class EasyTierFlags(Model):
    """EasyTier's own flags; what is left out keeps EasyTier's default."""

    default_protocol: Literal["tcp", "udp"] | None = None
    """Protocol that a host connects to its peers with where several would do; `tcp` by default."""
    enable_encryption: Truth | None = None
    """Encrypt what passes between the hosts; true by default. The settings are one for all hosts, as it must be."""
    encryption_algorithm: Literal["aes-gcm", "aes-256-gcm", "xor", "chacha20"] | None = None
    """Cipher; `aes-gcm` by default."""
    enable_ipv6: Truth | None = None
    """Use IPv6 between the hosts; true by default."""
    latency_first: Truth | None = None
    """Prefer the path of least latency to the one of fewest hops."""
    enable_exit_node: Truth | None = None
    """Let hosts be exit nodes."""
    proxy_forward_by_system: Truth | None = None
    """Forward proxied subnets by the kernel."""
    relay_network_whitelist: Line | None = None
    """Names of other networks that hosts relay for, with wildcards; `*` by default."""
    disable_p2p: Truth | None = None
    """Send everything through the listed peers."""
    p2p_only: Truth | None = None
    """Send nothing but to hosts that are directly connected."""
    lazy_p2p: Truth | None = None
    """Connect hosts directly only once there is traffic between them."""
    need_p2p: Truth | None = None
    """Ask the others for direct connections, even if they are lazy."""
    relay_all_peer_rpc: Truth | None = None
    """Relay RPC of hosts of every network, so that they can find each other."""
    disable_tcp_hole_punching: Truth | None = None
    """No TCP hole punching."""
    disable_udp_hole_punching: Truth | None = None
    """No UDP hole punching."""
    disable_sym_hole_punching: Truth | None = None
    """No hole punching through symmetric NAT."""
    disable_upnp: Truth | None = None
    """Ask no router for port mappings."""
    enable_udp_broadcast_relay: Truth | None = None
    """Relay UDP broadcasts."""
    multi_thread: Truth | None = None
    """Several threads; true by default."""
    multi_thread_count: Integer | None = Field(default=None, ge=1, le=256)
    """How many threads; 2 by default."""
    data_compress_algo: Integer | None = Field(default=None, ge=1, le=2)
    """Compression: 1 is none, the default, 2 is zstd."""
    bind_device: Truth | None = None
    """Bind connections to the physical device; true by default."""
    enable_kcp_proxy: Truth | None = None
    """Carry TCP over KCP."""
    disable_kcp_input: Truth | None = None
    """Take no TCP over KCP from others."""
    disable_relay_kcp: Truth | None = None
    """Relay no KCP of this network."""
    enable_relay_foreign_network_kcp: Truth | None = None
    """Relay KCP of other networks."""
    enable_quic_proxy: Truth | None = None
    """Carry TCP over QUIC."""
    disable_quic_input: Truth | None = None
    """Take no TCP over QUIC from others."""
    disable_relay_quic: Truth | None = None
    """Relay no QUIC of this network."""
    enable_relay_foreign_network_quic: Truth | None = None
    """Relay QUIC of other networks."""
    disable_relay_data: Truth | None = None
    """Relay no data of this network."""
    accept_dns: Truth | None = None
    """Magic DNS: host names of the network are resolved."""
    tld_dns_zone: Line | None = None
    """Zone of the magic DNS."""
    foreign_relay_bps_limit: Integer | None = Field(default=None, ge=0, le=2**63 - 1)
    """Bytes a second relayed for other networks."""
    instance_recv_bps_limit: Integer | None = Field(default=None, ge=0, le=2**63 - 1)
    """Bytes a second received."""

    refused: ClassVar[Mapping[str, tuple[str, str]]] = {
        "dev_name": (_SET_HERE, "set cluster.overlay.device"),
        "mtu": (_SET_HERE, "set cluster.overlay.mtu"),
        "private_mode": (_SET_HERE, "remove it: the network is private"),
        "no_tun": ("Ray needs the network device", "remove it"),
        "use_smoltcp": ("Ray needs the network device and the kernel's TCP", "remove it"),
        "quic_listen_port": (_LISTENERS_ARE_TCP_AND_UDP, "remove it"),
    }


class Overlay(Model):
    """The EasyTier network that all hosts join."""

    network: Line = "rlinf-cloud-edge"
    """EasyTier network name."""
    cidr: IPv4Network = IPv4Network("10.10.0.0/24")
    """Address range of the overlay. It must not contain any host's own address."""
    device: DeviceName = "et0"
    """Name of the TUN device on every host."""
    port: Port = 11010
    """TCP and UDP port EasyTier listens on."""
    mtu: Integer = Field(default=1380, ge=576, le=1500)
    """EasyTier's MTU in bytes; with encryption the device has 20 less."""
    flags: EasyTierFlags = EasyTierFlags()
    """EasyTier's own flags, by the names they have in its configuration file."""
    easytier: EasyTierRelease = EasyTierRelease()
    """The pinned EasyTier release."""
