"""A wrong setting is found before anything is created, and the message names key, value, rule and fix."""

from __future__ import annotations

import pytest

from config.faults import SettingsError
from config.load import parse
from config.rules import faults_of_secret
from tests.example_settings import HOST_KEY, guide
from tests.settings_faults import faults, only_fault


def test_the_guides_example_is_accepted() -> None:
    cluster = parse(guide())
    assert [host.name for host in cluster.hosts] == ["bootstrap", "cloud-1", "edge-1"]


def test_a_missing_cluster_points_to_the_examples() -> None:
    with pytest.raises(SettingsError, match=r"cluster\n.*required\n.*config/Pulumi"):
        parse(None)


def test_an_unknown_key_is_named_with_the_nearest_known_one() -> None:
    raw = guide()
    raw["edges"][0]["overlayip"] = "10.10.0.12"
    fault = only_fault(raw)
    assert fault.key == "cluster.edges[0].overlayip"
    assert fault.fix.startswith("write `overlay_ip`; the keys here are: address, aws, device, enabled, env")


def test_a_missing_key_is_named_with_what_it_is_for() -> None:
    raw = guide()
    del raw["edges"][0]["overlay_ip"]
    fault = only_fault(raw)
    assert fault.key == "cluster.edges[0].overlay_ip"
    assert fault.value is None
    assert "fixed address in the overlay" in fault.rule
    assert fault.fix == "add it, such as 10.10.0.2"


def test_a_duplicate_overlay_ip_names_the_other_host_and_a_free_address() -> None:
    raw = guide()
    raw["edges"][0]["overlay_ip"] = "10.10.0.10"
    fault = only_fault(raw)
    assert (fault.key, fault.value) == ("cluster.edges[0].overlay_ip", "10.10.0.10")
    assert "cloud-1 has this one" in fault.rule
    assert fault.fix == "take a free address, such as 10.10.0.2"


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("10.11.0.1", "must be in cluster.overlay.cidr, 10.10.0.0/24"),
        ("10.10.0.0", "must not be the network or broadcast address of 10.10.0.0/24"),
        ("10.10.0.255", "must not be the network or broadcast address of 10.10.0.0/24"),
    ],
)
def test_an_overlay_ip_is_a_host_address_of_the_range(address: str, rule: str) -> None:
    raw = guide()
    raw["bootstrap"]["overlay_ip"] = address
    assert only_fault(raw).rule == rule


def test_a_lan_inside_the_overlays_range_is_refused() -> None:
    raw = guide()
    raw["edges"][0]["ssh"]["address"] = "10.10.0.200"
    fault = only_fault(raw)
    assert fault.key == "cluster.edges[0].ssh.address"
    assert "must not be in the overlay's range" in fault.rule


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])  # noqa: S104  # refused here
def test_a_public_address_is_one_that_others_can_reach(address: str) -> None:
    raw = guide()
    raw["cloud"][0]["public_address"] = address
    assert only_fault(raw).key == "cluster.cloud[0].public_address"


def test_duplicate_names_are_refused() -> None:
    raw = guide()
    raw["edges"][0]["name"] = "cloud-1"
    fault = only_fault(raw)
    assert fault.key == "cluster.edges[0].name"
    assert "cluster.cloud[0] has this one" in fault.rule


def test_one_machine_can_not_be_two_hosts() -> None:
    raw = guide()
    raw["cloud"][0]["ssh"]["address"] = "203.0.113.5"
    assert "bootstrap is reached at the same address and port" in only_fault(raw).rule


def test_a_jump_host_is_a_host_of_the_cluster() -> None:
    raw = guide()
    raw["edges"][0]["ssh"]["jump"] = "bastion"
    fault = only_fault(raw)
    assert fault.key == "cluster.edges[0].ssh.jump"
    assert fault.fix.startswith("write one of: bootstrap, cloud-1; or a bastion in full: {address: …, user: …,")


def test_a_jump_host_is_reached_directly() -> None:
    raw = guide()
    raw["cloud"][0]["ssh"]["jump"] = "edge-1"
    assert "reached through bootstrap" in only_fault(raw).rule


@pytest.mark.parametrize(
    "key", ["AAAA", "ssh-ed25519 not-base64", HOST_KEY.replace("ssh-ed25519", "ssh-rsa"), f"203.0.113.5 {HOST_KEY}"]
)
def test_a_host_key_is_a_public_key(key: str) -> None:
    raw = guide()
    raw["bootstrap"]["ssh"]["host_key"] = key
    fault = only_fault(raw)
    assert fault.key == "cluster.bootstrap.ssh.host_key"
    assert "ssh-keyscan -t ed25519 203.0.113.5" in fault.fix


@pytest.mark.parametrize("name", ["Edge", "edge_1", "-edge", "e" * 33, "", "edge\n"])
def test_a_host_name_is_one_that_easytier_does_not_cut(name: str) -> None:
    raw = guide()
    raw["edges"][0]["name"] = name
    assert only_fault(raw).key == "cluster.edges[0].name"


@pytest.mark.parametrize("device", ["e" * 16, "a/b", "", "et 0", ".", ".."])
def test_a_device_name_is_one_that_linux_allows(device: str) -> None:
    raw = guide()
    raw["overlay"] = {"device": device}
    assert only_fault(raw).key == "cluster.overlay.device"


@pytest.mark.parametrize("group", ["cluster", "node"])
def test_rlinfs_own_labels_are_refused(group: str) -> None:
    raw = guide()
    raw["cloud"][0]["group"] = group
    assert faults(raw)[0].key == "cluster.cloud[0].group"


def test_a_component_is_placed_on_a_group_that_exists() -> None:
    raw = guide()
    raw["rlinf"]["component_placement"]["actor"]["node_group"] = "gpu"
    fault = only_fault(raw)
    assert fault.key == "cluster.rlinf.component_placement.actor.node_group"
    assert fault.fix == "write one of: cloud, edge"


def test_a_version_that_yaml_reads_as_a_number_is_a_text_again() -> None:
    raw = guide()
    raw["ray"] = {"python": 3.11}
    assert parse(raw).ray.python == "3.11"


def test_all_faults_are_reported_at_once() -> None:
    raw = guide()
    raw["edges"][0]["overlay_ip"] = "10.10.0.10"
    raw["edges"][0]["ssh"]["jump"] = "bastion"
    raw["cloud"][0]["group"] = "node"
    found = faults(raw)
    assert len(found) == 4  # the placement on the group `cloud` is the fourth
    with pytest.raises(SettingsError, match="the settings have 4 faults; nothing was changed"):
        parse(raw)


def test_values_of_variables_are_never_repeated() -> None:
    raw = guide()
    raw["edges"][0]["env"] = {"HF_TOKEN": "canary\nvalue", "BAD NAME": "canary"}
    with pytest.raises(SettingsError) as caught:
        parse(raw)
    assert len(caught.value.faults) == 2
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("secret", "rule"),
    [
        (None, "need a network secret"),
        ("short", "16 to 128 characters; it has 5"),
        ("x" * 129, "16 to 128 characters; it has 129"),
        ("sixteen or more\n", "printable ASCII on one line"),
        ("sechzehn Zeichen ü", "printable ASCII on one line"),
    ],
)
def test_a_bad_network_secret_is_refused_without_repeating_it(secret: str | None, rule: str) -> None:
    (fault,) = faults_of_secret(secret)
    assert rule in fault.rule
    assert "pulumi config set --secret networkSecret" in fault.fix
    if secret is not None:
        assert secret not in str(fault)


def test_values_of_variables_are_not_repeated_even_where_their_holder_is_wrong() -> None:
    raw = guide()
    raw["edges"] = {"edge-1": {"env": {"TOKEN": "canary"}}}
    raw["cloud"][0]["enviroment"] = {"TOKEN": "canary"}
    raw["overlay"]["network_secret"] = "canary"
    raw["ray"] = {"env": "canary"}
    raw["rlinf"]["node_groups"] = {"cloud": {"env_configs": [{"env_vars": {"TOKEN": "canary\n"}}]}}
    text = "\n".join(map(str, faults(raw)))
    assert "cluster.edges: {…}" in text
    assert "cluster.rlinf.node_groups.cloud.env_configs[0].env_vars.TOKEN" in text
    assert "canary" not in text


def test_a_component_may_be_called_env_and_its_placement_is_shown() -> None:
    raw = guide()
    raw["rlinf"]["component_placement"]["env"]["placement"] = "0-9"
    assert only_fault(raw).value == "0-9"


def test_a_key_that_belongs_into_an_object_beside_it_is_named_with_its_place() -> None:
    raw = guide()
    raw["edges"][0]["hostkey"] = HOST_KEY
    fault = only_fault(raw)
    assert fault.fix.startswith("write `ssh.host_key`; the keys here are: address, ")
    assert fault.value is None


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("gpus", "4", "must be a whole number, without quotes"),
        ("gpus", True, "must be a whole number, without quotes"),
        ("gpus", -1, "must be at least 0"),
        ("gpus", 1025, "must be at most 1024"),
        ("enabled", "no", "must be true or false"),
        ("hardware", {"type": "Franka"}, "must be a list"),
        ("ssh", "192.168.1.20", "must be an object: keys with values"),
        ("overlay_ip", "10.10.0.300", "must be an IPv4 address, such as 10.10.0.1"),
        ("name", 7, "must be a text; what YAML takes for something else needs quotes"),
    ],
)
def test_a_value_of_another_kind_is_refused_in_our_words(key: str, value: object, rule: str) -> None:
    raw = guide()
    raw["edges"][0][key] = value
    fault = only_fault(raw)
    assert (fault.key, fault.rule) == (f"cluster.edges[0].{key}", rule)


class TestAllFaultsAtOnce:
    """A fault in one field hides none of the faults between fields, and makes up none."""

    def test_faults_in_fields_and_between_them_are_reported_together(self) -> None:
        raw = guide()
        raw["overlay"] = {"mtu": 3, "divice": "et1"}
        del raw["cloud"][0]["name"]
        raw["edges"][0] |= {"overlay_ip": "10.10.0.10", "lost": "yes"}
        raw["edges"][0]["ssh"]["jump"] = "bastion"
        raw["edges"].append({"name": "edge-2", "overlay_ip": "10.10.0.12", "ssh": {}})
        raw["edges"].append("edge-3")
        raw["rlinf"]["node_groups"] = {"egde": {}}
        assert [fault.key for fault in faults(raw)] == [
            "cluster.overlay.mtu",
            "cluster.overlay.divice",
            "cluster.cloud[0].name",
            "cluster.edges[0].lost",
            "cluster.edges[2]",
            "cluster.edges[0].overlay_ip",
            "cluster.edges[1].ssh.address",
            "cluster.edges[0].ssh.jump",
            "cluster.rlinf.node_groups.egde",
        ]

    @pytest.mark.parametrize(
        "wrong", [{"gpus": "four"}, {"group": ["a", 7.5, "b,c"]}, {"hardware": [{"type": "Frank"}]}]
    )
    def test_no_placement_is_refused_while_its_resources_are_in_doubt(self, wrong: dict[str, object]) -> None:
        raw = guide()
        raw["cloud"][0] |= wrong
        if "gpus" not in wrong:
            del raw["cloud"][0]["gpus"]
        assert [fault.key.rpartition("component_placement")[1] for fault in faults(raw)] == [""] * len(faults(raw))

    def test_a_wrong_overlay_is_not_taken_for_none(self) -> None:
        raw = guide()
        raw["overlay"] = True
        assert only_fault(raw).key == "cluster.overlay"

    def test_settings_with_little_left_still_name_what_is_missing(self) -> None:
        assert [fault.key for fault in faults({"cloud": [], "edges": 3})] == [
            "cluster.cloud",
            "cluster.edges",
            "cluster.rlinf",
        ]


class TestEnvironments:
    """An existing environment is named in one way."""

    @pytest.mark.parametrize(
        ("where", "ray", "key"),
        [
            ("cluster", {"venv": "/a", "activate": "source a"}, "cluster.ray.activate"),
            ("edge", {"venv": "/a", "activate": "source a"}, "cluster.edges[0].ray.activate"),
            ("edge", {}, "cluster.edges[0].ray"),
            ("edge", {"venv": "a"}, "cluster.edges[0].ray.venv"),
            ("edge", {"activate": "two\nlines"}, "cluster.edges[0].ray.activate"),
            ("edge", {"version": "2.60.0"}, "cluster.edges[0].ray.version"),
        ],
    )
    def test_two_ways_none_or_another_key_are_refused(self, where: str, ray: dict[str, str], key: str) -> None:
        raw = guide()
        (raw if where == "cluster" else raw["edges"][0])["ray"] = ray
        assert only_fault(raw).key == key
