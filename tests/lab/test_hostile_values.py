"""Settings that a shell, a unit file, TOML, YAML or an environment file could take for more than text.

One of the edges is a container without systemd, where units are read by our own supervisor. Each value must arrive
as it was written, and none may run: all that try leave a file behind.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Generator
from typing import Any

import pytest
from ruamel.yaml import YAML

from lab.stack import Stack
from tests.lab.cluster_fixtures import lab_with_stack, ok, ray_python, raylet_environment
from tests.lab.hostile_settings import OWNED, VALUES, variables

pytestmark = pytest.mark.long

NETWORK = f"net'\"\\ $(touch {OWNED}) `touch {OWNED}` $HOME #%s"
SECRET = f"s'\"\\ $(touch {OWNED}) `touch {OWNED}` $HOME #%n ={{}}"
BASE = "base '$(touch owned)' `touch owned` \".yaml"
NODES = ("cloud-1", "edge-1", "edge-2")


def hostile(cluster: dict[str, Any]) -> None:
    """Every setting that takes a text of the user's choice gets one of these."""
    everywhere, here = variables(), {f"{name}_HERE": value for name, value in variables().items()}
    cluster["overlay"]["network"] = NETWORK
    cluster["repair"] = VALUES[0]
    cluster["ray"]["env"] = everywhere
    cluster["edges"][0]["env"] = here
    cluster["rlinf"]["base_config"] = BASE
    cluster["rlinf"]["options"] = {"anything": list(VALUES[:4])}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack]:
    with lab_with_stack(
        tmp_path_factory.mktemp("project"), "-hostile", edges=2, kinds={"edge-2": "container"}, secret=SECRET
    ) as stack:
        (stack.project / BASE).write_text("runner: {max_epochs: 1}\ncluster: {}\n")
        stack.change(hostile)
        stack.up()
        yield stack


class TestHostileValues:
    """A value is a value."""

    @pytest.mark.parametrize("host", NODES)
    def test_variables_reach_the_raylet_as_they_were_written(self, stack: Stack, host: str) -> None:
        environment = raylet_environment(stack, host)
        assert {name: environment.get(name) for name in variables()} == variables()

    def test_variables_of_one_host_reach_workers_there_as_they_were_written(self, stack: Stack) -> None:
        code = (
            "import ray\n"
            "ray.init('auto', logging_level=40)\n"
            "@ray.remote(num_cpus=0)\n"
            "def told():\n"
            "    import os\n"
            "    return {k: v for k, v in os.environ.items() if k.startswith('HOSTILE_')}\n"
            "where = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy\n"
            "edge = next(n['NodeID'] for n in ray.nodes() if n['NodeManagerAddress'] == '10.10.0.11')\n"
            "print(ray.get(told.options(scheduling_strategy=where(edge, soft=False)).remote()))\n"
        )
        told = ast.literal_eval(ray_python(stack, "cloud-1", code).splitlines()[-1])
        assert told == variables() | {f"{name}_HERE": value for name, value in variables().items()}

    def test_a_launched_command_has_them_too(self, stack: Stack) -> None:
        code = "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('HOSTILE_')}))"
        assert json.loads(ray_python(stack, "cloud-1", code)) == variables()

    def test_the_rendered_config_holds_them(self, stack: Stack) -> None:
        on_head = YAML(typ="safe").load(ok(stack.lab.exec("cloud-1", "sh", "-c", "cat /etc/rlinf-cloud-edge/rlinf/*")))
        assert on_head["cluster"]["anything"] == list(VALUES[:4])

    def test_none_has_run(self, stack: Stack) -> None:
        for host in ("bootstrap", *NODES):
            assert stack.lab.exec(host, "test", "!", "-e", OWNED).returncode == 0, host
        for here in (OWNED, str(stack.project / "owned")):
            assert stack.lab.run("test", "!", "-e", here).returncode == 0

    def test_a_second_up_changes_nothing(self, stack: Stack) -> None:
        assert set(json.loads(stack.pulumi("preview", "--json"))["changeSummary"]) == {"same"}
