"""Settings beyond the guide's, on real hosts: two bootstraps, nodes that are left out, a base config, direct mode.

Each class has a cluster of its own, and its tests build on each other in the order they stand.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest
from ruamel.yaml import YAML

from lab import faults
from lab.stack import Edit, Stack
from tests.lab.cluster_fixtures import lab_with_stack, ok, raylet_environment, service_pids
from tests.lab.join_fixtures import join_scripts, nodes_table, run_as_owner

pytestmark = pytest.mark.long  # two clusters of other shapes


BASE = "# mine\ncluster: {num_nodes: 9} # of the example\nrunner:\n  name: x   # kept\n"


def addresses(stack: Stack) -> list[str]:
    """Addresses of the nodes that Ray has alive, told by the head."""
    code = (
        "import ray; ray.init('auto', logging_level=40); "
        "print(*sorted(n['NodeManagerAddress'] for n in ray.nodes() if n['Alive']))"
    )
    launch = "/opt/rlinf-cloud-edge/libexec/launch.sh"
    return ok(stack.lab.exec("cloud-1", launch, "python", "-c", code)).splitlines()[-1].split()


def recorded(stack: Stack) -> set[str]:
    """Names of the resources in the state."""
    state = json.loads(stack.pulumi("stack", "export"))
    return {resource["urn"].rpartition("::")[2] for resource in state["deployment"].get("resources", [])}


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    """A stack with two edges, and two cloud nodes of which the second becomes a bootstrap."""
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-wide", edges=2, clouds=2) as stack:
        (stack.project / "ppo.yaml").write_text(BASE)
        yield stack


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    """A stack with two cloud nodes and no edge."""
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-direct", edges=0, clouds=2) as stack:
        yield stack


class TestNodesThatAreLeftOut:
    """A cluster with two bootstraps, from which one edge is left out for now and another for good."""

    def settings(self, wide: Stack, edit: Edit = lambda _: None) -> None:
        """The lab's settings with the second cloud node for a bootstrap, and as an edit has changed them."""

        def both(cluster: dict[str, Any]) -> None:
            second = cluster["cloud"].pop()
            del second["public_address"]
            cluster["bootstrap"] = [cluster["bootstrap"], second]
            cluster["ssh"]["connect_timeout"] = 5
            cluster["rlinf"]["base_config"] = "ppo.yaml"
            cluster["overlay"]["flags"] = {"latency_first": True, "multi_thread_count": 1}
            edit(cluster)

        wide.change(both)

    def test_every_host_joins_at_both_bootstraps(self, wide: Stack) -> None:
        self.settings(wide)
        wide.up()
        assert addresses(wide) == ["10.10.0.10", "10.10.0.11", "10.10.0.12"]
        for host in ("cloud-1", "edge-1"):
            for bootstrap in ("10.10.0.1", "10.10.0.202"):
                ok(wide.lab.exec(host, "ping", "-c", "1", "-W", "10", bootstrap))
        assert "latency_first = true" in ok(wide.lab.exec("edge-1", "cat", "/etc/rlinf-cloud-edge/easytier.toml"))

    def test_the_base_config_is_on_the_head_with_its_cluster_replaced(self, wide: Stack) -> None:
        text = ok(wide.lab.exec("cloud-1", "cat", "/etc/rlinf-cloud-edge/rlinf/ppo.yaml"))
        assert text.startswith("# mine\ncluster:\n  num_nodes: 3\n")
        assert text.endswith("\nrunner:\n  name: x   # kept\n")
        assert text.strip() == wide.pulumi("stack", "output", "rlinf_config").strip()

    def test_a_disabled_node_leaves_ray_and_stays_in_the_overlay(self, wide: Stack) -> None:
        before = service_pids(wide, "edge-1")["rlinf-easytier.service"]

        def edit(cluster: dict[str, Any]) -> None:
            cluster["edges"][0]["enabled"] = False

        self.settings(wide, edit)
        wide.up()
        assert addresses(wide) == ["10.10.0.10", "10.10.0.12"]
        pids = service_pids(wide, "edge-1")
        assert (pids["rlinf-easytier.service"], pids["rlinf-ray.service"]) == (before, "0")
        config = YAML(typ="safe").load(wide.pulumi("stack", "output", "rlinf_config"))
        assert config["cluster"]["num_nodes"] == 2
        assert config["cluster"]["node_groups"][1] == {"label": "edge", "node_ranks": "1"}

    def test_it_comes_back(self, wide: Stack) -> None:
        self.settings(wide)
        wide.up()
        assert addresses(wide) == ["10.10.0.10", "10.10.0.11", "10.10.0.12"]

    def test_an_update_passes_without_a_lost_host_and_its_entry_then_goes_without_a_login(self, wide: Stack) -> None:
        faults.link_down(wide.lab.lab, wide.lab.lab.host("edge-2"))

        def lost(cluster: dict[str, Any]) -> None:
            cluster["edges"][1]["lost"] = True
            cluster["repair"] = "everything runs anew"

        def gone(cluster: dict[str, Any]) -> None:
            cluster["edges"].pop()
            cluster["repair"] = "everything runs anew"

        self.settings(wide, lost)
        wide.up()
        assert "edge-2-ray" in recorded(wide)
        self.settings(wide, gone)
        wide.up()
        assert not [name for name in recorded(wide) if name.startswith("edge-2")]
        assert wide.outputs()["overlay_ips"].keys() == {"bootstrap", "cloud-2", "cloud-1", "edge-1"}

    def test_the_rest_is_destroyed(self, wide: Stack) -> None:
        wide.pulumi("destroy", "--yes")
        assert wide.lab.exec("edge-1", "test", "-e", "/opt/rlinf-cloud-edge").returncode == 1


class TestDirectMode:
    """Two cloud nodes on one segment need no overlay: Ray runs on their own addresses."""

    def settings(self, direct: Stack, edit: Edit = lambda _: None, device: str = "host0") -> None:
        def whole(cluster: dict[str, Any]) -> None:
            del cluster["overlay"], cluster["bootstrap"]
            cluster["device"] = device
            for node in cluster["cloud"]:
                del node["overlay_ip"], node["public_address"]
            edit(cluster)

        direct.change(whole)

    def test_a_device_without_the_address_is_told_before_anything_is_changed(self, direct: Stack) -> None:
        self.settings(direct, device="lo")
        done = direct.run("up", "--yes", "--skip-preview")
        assert done.returncode != 0
        assert "cloud-2: this host can't take part yet" in done.stdout + done.stderr
        assert "the network device lo has no address 203.0.113.11" in done.stdout + done.stderr
        assert direct.lab.exec("cloud-2", "test", "-e", "/opt/rlinf-cloud-edge").returncode == 1

    def test_ray_runs_on_the_hosts_own_addresses(self, direct: Stack) -> None:
        self.settings(direct)
        direct.up()
        assert addresses(direct) == ["203.0.113.10", "203.0.113.11"]
        assert direct.outputs()["ray_address"] == "203.0.113.10:6379"
        environment = raylet_environment(direct, "cloud-2")
        assert (environment["RLINF_COMM_NET_DEVICES"], environment["RLINF_NODE_RANK"]) == ("host0", "1")

    def test_there_is_no_easytier(self, direct: Stack) -> None:
        assert "et0" not in ok(direct.lab.exec("cloud-1", "ip", "-brief", "link"))
        assert direct.lab.exec("cloud-1", "test", "-e", "/opt/rlinf-cloud-edge/easytier").returncode == 1

    def test_the_second_joins_by_its_owners_script_instead(self, direct: Stack) -> None:
        def by_script(cluster: dict[str, Any]) -> None:
            node = cluster["cloud"].pop()
            cluster["edges"] = [{"name": node["name"], "address": node["ssh"]["address"], "join": "script"}]

        def joined(cluster: dict[str, Any]) -> None:
            by_script(cluster)
            cluster["edges"][0]["joined"] = True

        self.settings(direct, by_script)
        direct.up()
        assert nodes_table(direct)["cloud-2"]["state"] == "pending"
        assert direct.lab.exec("cloud-2", "test", "-e", "/opt/rlinf-cloud-edge").returncode == 1
        script = join_scripts(direct)["cloud-2"]
        ok(run_as_owner(direct, "cloud-2", script))
        self.settings(direct, joined)
        direct.up()
        assert nodes_table(direct)["cloud-2"]["state"] == "joined"
        assert addresses(direct) == ["203.0.113.10", "203.0.113.11"]
        assert "et0" not in ok(direct.lab.exec("cloud-2", "ip", "-brief", "link"))
        ok(run_as_owner(direct, "cloud-2", script, "--down"))

    def test_destroy_leaves_nothing(self, direct: Stack) -> None:
        direct.pulumi("destroy", "--yes")
        for host in ("cloud-1", "cloud-2"):
            left = ok(direct.lab.exec(host, "ls", "/opt", "/etc", "/etc/systemd/system"))
            assert "rlinf-" not in left
            assert ok(direct.lab.exec(host, "nft", "list", "ruleset")) == ""
