"""RLinf itself uses the cluster: its own `Cluster`, placement, workers and transport, on the config as rendered.

One cluster with one edge serves all tests, on the environment that RLinf is installed in: by its path on the head, by
an activation command on the edge.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from lab.paths import CLONE, VENV, Cache
from lab.rlinf_env import build
from lab.stack import Stack
from lab.toolchain import versions
from tests.lab.cluster_fixtures import lab_with_stack, ok, raylet_environment
from tests.lab.hostile_settings import OWNED, variables

PROGRAMS = Path(__file__).with_name("rlinf_programs")
HEAD = "cloud-1"
HOME = "/home/debian"
CONFIG = f"{HOME}/rlinf.yaml"
LAUNCH = "/opt/rlinf-cloud-edge/libexec/launch.sh"


@pytest.fixture(scope="module")
def rlinf_venv() -> Path:
    cache = Cache.from_environment()
    return build(cache.rlinf, cache.uv)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, rlinf_venv: Path) -> Generator[Stack, None, None]:
    """A cluster that is up, with what `pulumi stack output rlinf_config` printed in a file on the head."""
    with lab_with_stack(tmp_path_factory.mktemp("project"), "-rlinf", edges=1) as stack:
        # As RLinf's image has it.
        script = 'source "/opt/rlinf/$1/bin/activate"; export SWITCHED_TO="$1"; echo "switched to $1"\n'
        ok(stack.lab.exec("edge-1", "tee", "/usr/local/bin/switch_env", stdin=script))
        stack.change(with_environments)
        stack.up()
        put_on_head(stack, CONFIG, stack.pulumi("stack", "output", "rlinf_config"))
        yield stack


def with_environments(cluster: dict[str, Any]) -> None:
    cluster["ray"] = {"version": versions.RAY, "venv": "/opt/rlinf/venv"}
    cluster["edges"][0]["ray"] = {"activate": "source switch_env venv"}
    cluster["edges"][0]["env"] = variables()


def put_on_head(stack: Stack, path: str, text: str) -> None:
    ok(stack.lab.exec(HEAD, "tee", path, user="debian", stdin=text))


def on_head(stack: Stack, *argv: str, limit: float = 120) -> subprocess.CompletedProcess[str]:
    """Runs a command on the head as the account that Ray runs as."""
    return stack.lab.exec(HEAD, *argv, user="debian", limit=limit)


def reported(stack: Stack, program: str, argument: str = CONFIG) -> Any:  # JSON
    """What one of our programs reports that runs on the head; most read the rendered config."""
    put_on_head(stack, f"{HOME}/{program}", (PROGRAMS / program).read_text())
    return json.loads(ok(on_head(stack, LAUNCH, "python", f"{HOME}/{program}", argument)).splitlines()[-1])


@pytest.fixture(scope="module")
def report(stack: Stack) -> dict[str, Any]:
    """What RLinf makes of the rendered config."""
    return reported(stack, "cluster_report.py")


@pytest.fixture(scope="module")
def example(stack: Stack) -> str:
    """The example's program, on the head alone."""
    ok(stack.lab.run("scp", "-qr", str(CLONE / "examples" / "cartpole"), f"{HEAD}:"))
    return f"{HOME}/cartpole/train.py"


class TestTheRenderedConfig:
    """RLinf takes the stack's output as it is."""

    def test_rlinf_sees_each_node_with_its_rank_and_overlay_ip(self, report: dict[str, Any]) -> None:
        assert report["nodes"] == [{"rank": 0, "ip": "10.10.0.10"}, {"rank": 1, "ip": "10.10.0.11"}]

    def test_rlinf_places_the_components_where_the_settings_say(self, report: dict[str, Any]) -> None:
        cloud = {"process_rank": 0, "node_rank": 0, "ip": "10.10.0.10", "node_group": "cloud"}
        edge = {"process_rank": 0, "node_rank": 1, "ip": "10.10.0.11", "node_group": "edge"}
        assert report["placements"] == {"actor": [cloud], "rollout": [edge], "env": [edge]}


class TestWorkers:
    """RLinf's workers, placed by that config, reach each other."""

    def test_an_actor_in_the_cloud_and_a_rollout_worker_at_the_edge_exchange_tensors_over_et0(
        self, stack: Stack
    ) -> None:
        report = reported(stack, "exchange.py")
        for component, hostname, rank in (("actor", "cloud-1", 0), ("rollout", "edge-1", 1)):
            seen = report[component]
            assert (seen["hostname"], seen["node_rank"], seen["gloo_device"]) == (hostname, rank, "et0")
            assert seen["contents_match"]
            assert seen["device_sent_bytes"] > report["bytes_each_way"]
            assert seen["device_received_bytes"] > report["bytes_each_way"]

    def test_an_activation_command_is_whose_environment_they_have(self, stack: Stack) -> None:
        environment = raylet_environment(stack, "edge-1")
        assert (environment["SWITCHED_TO"], environment["VIRTUAL_ENV"]) == ("venv", "/opt/rlinf/venv")

    def test_a_hosts_own_variables_are_theirs_as_they_were_written(self, stack: Stack) -> None:
        environment = raylet_environment(stack, "edge-1")
        assert {name: environment.get(name) for name in variables()} == variables()
        for host in (HEAD, "edge-1"):
            assert stack.lab.exec(host, "test", "!", "-e", OWNED).returncode == 0, host

    def test_all_nodes_add_up_a_tensor_over_the_device_that_is_named(self, stack: Stack) -> None:
        report = reported(stack, "all_reduce.py", "2")
        assert [told["rank"] for told in report] == [0, 1]
        for told in report:
            assert (told["device"], told["device_is_there"], told["sum"]) == ("et0", True, 1.0)
            assert told["device_sent_bytes"] > 10_000_000


class TestTheExample:
    """What examples/cartpole promises."""

    def test_a_policy_learns_with_the_update_in_the_cloud_and_the_environments_at_the_edge(
        self, stack: Stack, example: str, tmp_path: Path
    ) -> None:
        results = f"{HOME}/cartpole-results"
        told = ok(
            on_head(
                stack,
                *(LAUNCH, "python", example, "--config", CONFIG, "--output", results),
                limit=400,
            )
        )
        assert told.splitlines()[:3] == ["actor    on cloud-1", "rollout  on edge-1", "env      on edge-1"]
        assert told.splitlines()[-1].startswith("Learned: ")
        log = [json.loads(line) for line in ok(on_head(stack, "cat", f"{results}/log.jsonl")).splitlines()]
        assert log[0]["mean_return"] < 100
        assert log[-1]["mean_return"] >= 475
        ok(stack.lab.run("scp", "-q", f"{HEAD}:{results}/reward.png", str(tmp_path)))
        assert (tmp_path / "reward.png").read_bytes().startswith(b"\x89PNG")

    def test_outside_rays_environment_it_says_so_instead_of_waiting_for_ever(self, stack: Stack, example: str) -> None:
        done = on_head(stack, "/opt/rlinf/venv/bin/python", example, "--config", CONFIG)
        assert done.returncode == 1
        assert "RAY_ADDRESS is not set" in done.stderr


def test_the_programs_and_the_example_fit_the_types_of_rlinf_and_torch(rlinf_venv: Path) -> None:
    project = CLONE / "lab" / "rlinf_env" / "pyrightconfig.json"
    python = rlinf_venv / "bin" / "python"
    checked = subprocess.run(
        [VENV / "bin" / "pyright", "--project", project, "--pythonpath", python],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout
