"""What changes in the settings changes on the hosts it concerns, in the processes that run there, and nowhere else.

One cluster takes one change after the other. Each class says what may be touched; the next `up` has nothing to do.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from components.token import ray_token
from lab import faults, keys, network, topology
from lab.stack import Edit, Stack
from tests.lab.change_fixtures import easytier_release, mirror_of, planned, ray_wheels
from tests.lab.cluster_fixtures import lab_with_stack, ok, ray_python, service_pids
from tests.lab.fault_fixtures import judge_of
from tests.lab.join_fixtures import join_scripts, nodes_table, run_as_owner

pytestmark = pytest.mark.long  # a dozen updates of one cluster


HOSTS = ("bootstrap", "cloud-1", "edge-1", "edge-3")
NODES = HOSTS[1:]
EASYTIER, RAY = "rlinf-easytier.service", "rlinf-ray.service"
AUTHORIZED_KEYS = "/home/debian/.ssh/authorized_keys"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack, None, None]:
    """A cluster of two edges with ranks of their own; a third one between them waits."""
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-changes", edges=3) as stack:
        settings(stack)
        stack.up()
        yield stack


def settings(stack: Stack, *edits: Edit, with_the_middle_one: bool = False) -> None:
    """Writes the settings that all tests start from, as edits have changed them."""

    def edit(cluster: dict[str, Any]) -> None:
        first, middle, last = cluster["edges"]
        first["rank"], last["rank"], middle["rank"] = 1, 2, 3
        cluster["edges"] = [first, middle, last] if with_the_middle_one else [first, last]
        for each in edits:
            each(cluster)

    stack.change(edit)


def pids(stack: Stack, hosts: Iterable[str] = HOSTS) -> dict[tuple[str, str], str]:
    """Host and service to main process."""
    return {(host, service): pid for host in hosts for service, pid in service_pids(stack, host).items()}


def touched(before: dict[tuple[str, str], str], after: dict[tuple[str, str], str]) -> set[tuple[str, str]]:
    """The services that were started anew."""
    assert "0" not in {pid for (host, service), pid in after.items() if (host, service) != ("bootstrap", RAY)}
    return {service for service, pid in after.items() if pid != before.get(service)}


def on(hosts: Iterable[str], *services: str) -> set[tuple[str, str]]:
    return {(host, service) for host in hosts for service in services}


def environment(stack: Stack, host: str, process: str) -> set[str]:
    """The variables of a running process, `NAME=value`."""
    pid = ok(stack.lab.exec(host, "pgrep", "-x", process)).split()[0]
    return set(ok(stack.lab.exec(host, "cat", f"/proc/{pid}/environ")).split("\0"))


def changed(stack: Stack, resources: Iterable[str], other: Mapping[str, str] | None = None) -> set[tuple[str, str]]:
    """Applies the settings: the preview shows just these updates, and the next `up` has nothing to do.

    Args:
        stack: with the new settings.
        resources: names of those that are updated.
        other: name of each other resource of the preview → what is to be done to it.

    Returns:
        Host and service of what was started anew.
    """
    assert planned(stack) == {**dict.fromkeys(resources, "update"), **(other or {})}
    before = pids(stack)
    stack.up()
    after = pids(stack)
    assert "unchanged" in stack.up()
    assert planned(stack) == {}
    return touched(before, after)


def steps(*names: str, hosts: Iterable[str] = NODES) -> list[str]:
    return [f"{host}-{name}" for host in hosts for name in names]


GATE = "cloud-1-gate"


class TestPlacement:
    """Where RLinf's components run is a matter of the rendered config: no process is touched."""

    def test_it_is_in_the_config_on_the_head(self, stack: Stack) -> None:
        def edit(cluster: dict[str, Any]) -> None:
            cluster["rlinf"]["component_placement"]["env"]["placement"] = "1-1"

        settings(stack, edit)
        assert changed(stack, [GATE]) == set()
        on_head = ok(stack.lab.exec("cloud-1", "cat", "/etc/rlinf-cloud-edge/rlinf/cluster.yaml"))
        assert on_head.strip() == stack.pulumi("stack", "output", "rlinf_config").strip()
        assert "1-1" in on_head
        settings(stack)
        assert changed(stack, [GATE]) == set()


class TestRank:
    """A changed rank starts that host's Ray anew, and no other's."""

    def test_two_edges_change_places(self, stack: Stack) -> None:
        def edit(cluster: dict[str, Any]) -> None:
            first, last = cluster["edges"]
            first["rank"], last["rank"] = last["rank"], first["rank"]

        settings(stack, edit)
        edges = ("edge-1", "edge-3")
        assert changed(stack, [*steps("ray", hosts=edges), GATE]) == on(edges, RAY)
        assert "RLINF_NODE_RANK=2" in environment(stack, "edge-1", "raylet")
        assert "RLINF_NODE_RANK=1" in environment(stack, "edge-3", "raylet")
        assert judge_of(stack).whole == "3 of 3 nodes 0=10.10.0.10 1=10.10.0.13 2=10.10.0.11"
        settings(stack)
        stack.up()


class TestVariables:
    """A variable of one host starts that host's Ray anew."""

    def test_it_is_in_the_environment_of_the_raylet(self, stack: Stack) -> None:
        settings(stack, lambda cluster: cluster["edges"][1].update(env={"CAMERA": "two words"}))
        assert changed(stack, ["edge-3-ray", GATE]) == on(["edge-3"], RAY)
        assert "CAMERA=two words" in environment(stack, "edge-3", "raylet")
        settings(stack)
        stack.up()


class TestMtu:
    """A changed MTU is that of the running devices; Ray goes on."""

    def test_it_is_that_of_the_device(self, stack: Stack) -> None:
        settings(stack, lambda cluster: cluster["overlay"].update(mtu=1300))
        assert changed(stack, steps("overlay", hosts=HOSTS)) == on(HOSTS, EASYTIER)
        for host in HOSTS:
            assert " mtu 1280 " in ok(stack.lab.exec(host, "ip", "link", "show", "dev", "et0"))
        assert judge_of(stack).ask() == judge_of(stack).whole
        settings(stack)
        stack.up()


class TestSecret:
    """A new network secret reaches every host in one `up`, in EasyTier and in Ray."""

    def test_it_is_that_of_the_processes(self, stack: Stack) -> None:
        new = "another-secret-for-everyone"
        stack.pulumi("config", "set", "--secret", "networkSecret", stdin=new)
        resources = [*steps("overlay", hosts=HOSTS), *steps("ray"), GATE]
        assert changed(stack, resources) == on(HOSTS, EASYTIER) | on(NODES, RAY)
        for host in HOSTS:
            pid = service_pids(stack, host)[EASYTIER]
            assert f"ET_NETWORK_SECRET={new}" in ok(stack.lab.exec(host, "cat", f"/proc/{pid}/environ")).split("\0")
        # The gate of that `up` has run tasks with the new token; with the old one there are none.
        token = ok(stack.lab.exec("edge-1", "cat", "/etc/rlinf-cloud-edge/ray.token"))
        assert token == ray_token(new)


class TestEasyTierRelease:
    """Another release replaces the one before it, and is what runs."""

    def test_it_is_that_of_the_processes(self, stack: Stack, tmp_path: Path) -> None:
        release = easytier_release(stack, tmp_path, "2.6.5")
        with mirror_of(stack, tmp_path) as mirror:

            def edit(cluster: dict[str, Any]) -> None:
                easytier = cluster["overlay"]["easytier"]
                easytier["version"] = "2.6.5"
                easytier["url"] = f"{mirror}/{release.path.name}"
                easytier["sha256"] = dict.fromkeys(easytier["sha256"], release.sha256)

            settings(stack, edit)
            assert changed(stack, steps("check", "prepare", "overlay", hosts=HOSTS)) == on(HOSTS, EASYTIER)
        for host in HOSTS:
            folder = "/opt/rlinf-cloud-edge/easytier"
            assert ok(stack.lab.exec(host, "cat", f"{folder}/.sha256")) == release.sha256
            assert ok(stack.lab.exec(host, "cat", f"{folder}/RELEASE")) == "2.6.5"
            pid = service_pids(stack, host)[EASYTIER]
            newer = ok(stack.lab.exec(host, "find", f"/proc/{pid}", "-maxdepth", "0", "-newer", f"{folder}/.sha256"))
            assert newer.strip() == f"/proc/{pid}", "the process is older than the release"
        settings(stack)
        stack.up()


class TestRayVersion:
    """Another Ray is installed beside the one that runs, replaces it on every node, and then the old one goes."""

    def test_it_is_that_of_the_workers(self, stack: Stack, tmp_path: Path) -> None:
        new = ray_wheels(stack, tmp_path)
        with mirror_of(stack, tmp_path) as mirror:
            settings(stack, lambda cluster: cluster["ray"].update(version=new, find_links=f"{mirror}/"))
            assert changed(stack, [*steps("check", "prepare", "ray"), GATE]) == on(NODES, RAY)
        code = (
            "import json, ray\n"
            "ray.init('auto', logging_level=40, log_to_driver=False)\n"
            "from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as Node\n"
            "asks = ray.remote(num_cpus=0)(lambda: ray.__version__)\n"
            "nodes = [Node(node['NodeID'], soft=False) for node in ray.nodes() if node['Alive']]\n"
            "print(json.dumps([ray.get(asks.options(scheduling_strategy=node).remote()) for node in nodes]))"
        )
        assert json.loads(ray_python(stack, "cloud-1", code).splitlines()[-1]) == [new] * len(NODES)
        for host in NODES:
            listed = ok(stack.lab.exec(host, "ls", "/opt/rlinf-cloud-edge"))
            assert [name for name in listed.split() if name.startswith("ray-")] == [f"ray-{new}-python-3.11"]
        settings(stack)
        stack.up()


class TestLogin:
    """How we log in is no matter of what runs there."""

    def test_another_ssh_key(self, stack: Stack, tmp_path: Path) -> None:
        def login(key: Path) -> Edit:
            return lambda cluster: cluster["ssh"].update(key_file=str(key))

        old, new = stack.lab.lab.files.client_key, tmp_path / "new"
        settings(stack, login(old))
        stack.up()
        keys.create(new, "ed25519", "new")
        kept = {host: ok(stack.lab.exec(host, "cat", AUTHORIZED_KEYS)) for host in HOSTS}
        try:
            for host in HOSTS:
                ok(stack.lab.exec(host, "tee", AUTHORIZED_KEYS, stdin=new.with_suffix(".pub").read_text()))
            settings(stack, login(new))
            resources = [*steps("check", "prepare", "overlay", hosts=HOSTS), *steps("ray"), GATE]
            assert changed(stack, resources) == set()
        finally:
            for host, text in kept.items():
                ok(stack.lab.exec(host, "tee", AUTHORIZED_KEYS, stdin=text))
        settings(stack)
        stack.up()

    def test_another_address_of_the_same_machine(self, stack: Stack) -> None:
        old = stack.lab.lab.host("edge-1").address
        new = f"{old.rpartition('.')[0]}.77"
        ok(stack.lab.exec("edge-1", "ip", "address", "add", f"{new}/24", "dev", "host0"))
        # The new one is to be the only one, and the route out goes with the old.
        route = ok(stack.lab.exec("edge-1", "ip", "route", "show", "default")).split("\n")[0].split()
        ok(stack.lab.exec("edge-1", "ip", "address", "del", f"{old}/24", "dev", "host0"))
        ok(stack.lab.exec("edge-1", "ip", "route", "replace", "default", "via", route[2]))
        let_in = f"insert rule inet router forward ip daddr {new} tcp dport 22 accept"
        network.run_in(topology.router_namespace(stack.lab.name, 1), "nft", *let_in.split())
        try:
            settings(stack, lambda cluster: cluster["edges"][0]["ssh"].update(address=new))
            assert changed(stack, steps("check", "prepare", "overlay", "ray", hosts=["edge-1"])) == set()
            assert judge_of(stack).ask() == judge_of(stack).whole
        finally:
            ok(stack.lab.exec("edge-1", "ip", "address", "add", f"{old}/24", "dev", "host0"))
        settings(stack)
        stack.up()


class TestRepair:
    """A new value of `repair` runs every script, and starts nothing anew."""

    def test_the_preview_shows_all_of_them(self, stack: Stack) -> None:
        settings(stack, lambda cluster: cluster.update(repair="again"))
        resources = [*steps("check", "prepare", "overlay", hosts=HOSTS), *steps("ray"), GATE]
        assert changed(stack, resources) == set()
        settings(stack)
        stack.up()


class TestReached:
    """A host that is reached in another way from now on stays the node it is, and no other host is touched."""

    EDGE = "edge-3"
    CHECK = f"{EDGE}-check"

    def reached(self, join: str, *, joined: bool = False) -> Edit:
        def edit(cluster: dict[str, Any]) -> None:
            edge = cluster["edges"][1]
            ssh = edge.pop("ssh")
            edge["join"] = join
            if join == "overlay":
                edge["ssh"] = {"host_key": ssh["host_key"]}
            if joined:
                edge["joined"] = True

        return edit

    def join(self, stack: Stack) -> set[tuple[str, str]]:
        """Has the owner run the script; what was started anew."""
        before = pids(stack)
        ok(run_as_owner(stack, self.EDGE, join_scripts(stack)[self.EDGE]))
        return touched(before, pids(stack))

    def test_over_the_overlay_and_back(self, stack: Stack) -> None:
        steps_there = steps("prepare", "overlay", "ray", hosts=[self.EDGE])
        settings(stack, self.reached("overlay"))
        # Who can't be logged in to is not checked.
        assert changed(stack, [GATE], {self.CHECK: "delete"}) == set()
        # It listens for nobody any more.
        assert self.join(stack) == on([self.EDGE], EASYTIER)
        settings(stack, self.reached("overlay", joined=True))
        assert changed(stack, [*steps_there, GATE], {self.CHECK: "create"}) == set()
        settings(stack)
        assert changed(stack, [*steps_there, self.CHECK]) == on([self.EDGE], EASYTIER)
        assert judge_of(stack).whole == "3 of 3 nodes 0=10.10.0.10 1=10.10.0.11 2=10.10.0.13"

    def test_by_its_owner_alone_and_back(self, stack: Stack) -> None:
        """What we have installed goes while we may still log in; its owner's script then installs it."""
        steps_there = steps("check", "prepare", "overlay", "ray", hosts=[self.EDGE])
        settings(stack, self.reached("script"))
        assert planned(stack) == {**dict.fromkeys(steps_there, "delete"), GATE: "update"}
        others = [host for host in HOSTS if host != self.EDGE]
        before = pids(stack, others)
        stack.up()
        assert stack.lab.exec(self.EDGE, "test", "-e", "/opt/rlinf-cloud-edge").returncode == 1
        assert nodes_table(stack)[self.EDGE]["state"] == "pending"
        ok(run_as_owner(stack, self.EDGE, join_scripts(stack)[self.EDGE]))
        settings(stack, self.reached("script", joined=True))
        assert planned(stack) == {GATE: "update"}
        stack.up()
        assert nodes_table(stack)[self.EDGE]["state"] == "joined"
        assert "unchanged" in stack.up()
        settings(stack)
        assert planned(stack) == {**dict.fromkeys(steps_there, "create"), GATE: "update"}
        joined = pids(stack, [self.EDGE])
        stack.up()
        assert touched(joined, pids(stack, [self.EDGE])) == on([self.EDGE], EASYTIER, RAY)
        assert pids(stack, others) == before
        assert judge_of(stack).whole == "3 of 3 nodes 0=10.10.0.10 1=10.10.0.11 2=10.10.0.13"
        assert "unchanged" in stack.up()


class TestEdgeInTheMiddle:
    """A host that is added or removed is the only one that is touched."""

    def test_it_is_added(self, stack: Stack) -> None:
        settings(stack, with_the_middle_one=True)
        created = ["edge-2", *steps("check", "prepare", "overlay", "ray", hosts=["edge-2"])]
        assert planned(stack) == {**dict.fromkeys(created, "create"), GATE: "update"}
        before = pids(stack)
        stack.up()
        assert touched(before, pids(stack)) == set()
        assert judge_of(stack).whole == "4 of 4 nodes 0=10.10.0.10 1=10.10.0.11 2=10.10.0.13 3=10.10.0.12"
        assert "unchanged" in stack.up()

    def test_it_is_removed(self, stack: Stack) -> None:
        settings(stack)
        deleted = ["edge-2", *steps("check", "prepare", "overlay", "ray", hosts=["edge-2"])]
        assert planned(stack) == {**dict.fromkeys(deleted, "delete"), GATE: "update"}
        before = pids(stack)
        stack.up()
        assert touched(before, pids(stack)) == set()
        assert stack.lab.exec("edge-2", "test", "-e", "/opt/rlinf-cloud-edge").returncode == 1
        assert judge_of(stack).whole == "3 of 3 nodes 0=10.10.0.10 1=10.10.0.11 2=10.10.0.13"
        assert "unchanged" in stack.up()

    def test_the_order_of_the_list_does_not_matter(self, stack: Stack) -> None:
        settings(stack, lambda cluster: cluster["edges"].reverse())
        assert planned(stack) == {}


class TestSetUpAnew:
    """A machine that shows another host key is another machine, and the old one can't be undone any more. Last."""

    def test_it_takes_its_place_once_the_old_one_is_said_to_be_lost(self, stack: Stack) -> None:
        lab = stack.lab.lab
        edge = lab.host("edge-3")

        def quickly(cluster: dict[str, Any]) -> None:
            cluster["edges"][1]["ssh"]["connect_timeout"] = 5

        def new_key(cluster: dict[str, Any]) -> None:
            cluster["edges"][1]["ssh"]["host_key"] = keys.public_key(faults.other_host_key(lab, edge))

        settings(stack, quickly)
        stack.up()
        faults.wrong_host_key(lab, edge)
        settings(stack, quickly, new_key)
        told = stack.run("up", "--yes", "--skip-preview").stdout
        assert "edge-3 (192.168.3.20:22 through bootstrap) " in told
        assert "set lost: true on it and run pulumi up" in told
        settings(stack, lambda cluster: cluster["edges"][1].update(lost=True))
        stack.up()
        settings(stack, quickly, new_key)
        stack.up()
        assert judge_of(stack).whole == "3 of 3 nodes 0=10.10.0.10 1=10.10.0.11 2=10.10.0.13"
        assert "unchanged" in stack.up()
