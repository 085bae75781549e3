"""A cluster whose bootstrap and cloud node are created on AWS, in the lab's AWS world: its instances are booted hosts.

The edge is a host that exists. What AWS refuses is in `tests/contract/test_aws_program.py`, where no host need boot.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import botocore.session
import pytest

from lab import hosts, session
from lab.aws_world.access import endpoint
from lab.aws_world.catalog import FAILING
from lab.paths import Cache
from lab.polling import wait_for
from lab.rlinf_env import build
from lab.stack import NAME, Edit, Stack, copy_program
from lab.toolchain import versions
from tests.lab.cluster_fixtures import ok, ray_python, service_pids

pytestmark = pytest.mark.root

EDGE = "cloud-1"
"""The lab's host that is the edge: one with an address of its own, which a bootstrap on AWS need not be a way to."""
SEEN = {
    "nodes": [{"rank": 0, "ip": "10.10.0.50"}, {"rank": 1, "ip": "10.10.0.10"}],
    "placements": {
        "actor": [{"process_rank": 0, "node_rank": 0, "ip": "10.10.0.50", "node_group": "cloud"}],
        "rollout": [{"process_rank": 0, "node_rank": 1, "ip": "10.10.0.10", "node_group": "edge"}],
    },
}
"""What RLinf is to see of the cluster: the created head and the edge, where the settings place what."""
REPORT = Path(__file__).with_name("rlinf_programs") / "cluster_report.py"


def cluster_on_aws(stack: Stack) -> dict[str, Any]:
    """The lab's inventory with bootstrap and cloud node created, and the lab's cloud node as the edge."""
    cluster = stack.lab.inventory()["cluster"]
    edge = cluster["cloud"][0]
    del edge["public_address"]
    public_key = ok(stack.lab.run("ssh-add", "-L")).splitlines()[0]
    return cluster | {
        "aws": {"public_key": public_key, "ssh_from": ["203.0.113.0/24"], "vpc": {}},
        "bootstrap": {"overlay_ip": "10.10.0.1", "aws": {"instance_type": "t3.small"}},
        "cloud": [{"name": "trainer", "overlay_ip": "10.10.0.50", "aws": {"instance_type": "m5.large"}}],
        "edges": [edge | {"name": "edge-1", "group": "edge"}],
        "rlinf": {
            "component_placement": {
                "actor": {"node_group": "cloud", "placement": 0},
                "rollout": {"node_group": "edge", "placement": 0},
            }
        },
    }


@contextmanager
def stack_on_aws(folder: Path, suffix: str) -> Generator[tuple[Stack, Any], None, None]:
    """A lab with an AWS world and a stack that has settings and nothing else yet; and a client of the account."""
    with session.running(session.name_for_tests(suffix), edges=1, clouds=1, aws=True) as lab:
        stack = Stack(copy_program(folder), lab)
        stack.create(secret=f"canary-{secrets.token_hex(16)}")
        stack.settings(cluster_on_aws(stack))
        with endpoint(lab.name) as url:
            account = botocore.session.Session()
            account.set_credentials("lab", "lab")
            yield stack, account.create_client("ec2", region_name="us-east-1", endpoint_url=url)


def instances(ec2: Any) -> dict[str, dict[str, Any]]:
    """Host to its instance, of those that are not terminated."""
    found: dict[str, dict[str, Any]] = {}
    for reservation in ec2.describe_instances()["Reservations"]:
        for each in reservation["Instances"]:
            if each["State"]["Name"] != "terminated":
                name = next(tag["Value"] for tag in each["Tags"] if tag["Key"] == "Name")
                found[name.removeprefix(f"{NAME}-")] = each
    return found


def left(ec2: Any) -> list[Any]:
    """What carries our tags in the account."""
    ours = [{"Name": "tag:rlinf-cloud-edge:stack", "Values": [NAME]}]
    return [
        *instances(ec2),
        *ec2.describe_volumes(Filters=ours)["Volumes"],
        *ec2.describe_addresses(Filters=ours)["Addresses"],
        *ec2.describe_security_groups(Filters=ours)["SecurityGroups"],
        *ec2.describe_vpcs(Filters=ours)["Vpcs"],
        *ec2.describe_key_pairs(Filters=ours)["KeyPairs"],
    ]


def test_from_an_empty_account_to_a_head_in_the_overlay_and_back(tmp_path: Path) -> None:
    with stack_on_aws(tmp_path, "-ec2") as (stack, ec2):
        stack.up()
        assert [row["name"] for row in stack.outputs()["nodes"]] == ["bootstrap", "trainer", "edge-1"]
        assert "num_nodes: 2" in stack.outputs()["rlinf_config"]
        assert "unchanged" in stack.up()
        began = time.monotonic()
        stack.pulumi("destroy", "--yes", "--skip-preview")
        assert time.monotonic() - began < 60
        assert left(ec2) == []


def settings(stack: Stack, change: Edit = lambda _: None) -> None:
    """Writes the settings of a cluster whose nodes have the environment that RLinf is installed in."""
    cluster = cluster_on_aws(stack)
    cluster["ray"] = {"version": versions.RAY, "venv": "/opt/rlinf/venv"}
    change(cluster)
    stack.settings(cluster)


def after_the_stop(cluster: dict[str, Any]) -> None:
    cluster["repair"] = "after the stop"


def larger(cluster: dict[str, Any]) -> None:
    after_the_stop(cluster)
    cluster["cloud"][0]["aws"]["instance_type"] = "m5.xlarge"


def helped(cluster: dict[str, Any]) -> None:
    """Another edge, a spot instance of somebody's own image, whose boot scripts fail."""
    larger(cluster)
    aws = {"instance_type": "t3.medium", "ami": FAILING, "spot": True}
    cluster["edges"].append({"name": "helper", "overlay_ip": "10.10.0.51", "aws": aws, "ssh": {"user": "admin"}})


def without_helper(cluster: dict[str, Any]) -> None:
    helped(cluster)
    cluster["edges"][1]["lost"] = True


def wait_for_login(stack: Stack, host: str) -> None:
    """Returns as soon as a login works by the stack's own ssh_config."""
    (stack.project / "ssh_config").write_text(stack.pulumi("stack", "output", "ssh_config"))
    ssh = ("ssh", "-F", str(stack.project / "ssh_config"), "-o", "ConnectTimeout=3", host, "true")
    assert wait_for(lambda: stack.lab.run(*ssh).returncode == 0 or None, 90), f"no login at {host}"


def seen_by_rlinf(stack: Stack) -> dict[str, Any]:
    """What RLinf's own `Cluster` makes of the stack's output, on the head, as a user gets there by the outputs."""
    for output in ("ssh_config", "rlinf_config"):
        (stack.project / output).write_text(stack.pulumi("stack", "output", output))
    ssh = ["-F", str(stack.project / "ssh_config")]
    ok(stack.lab.run("scp", *ssh, str(stack.project / "rlinf_config"), str(REPORT), "trainer:"))
    launch = ("/opt/rlinf-cloud-edge/libexec/launch.sh", "python", REPORT.name, "rlinf_config")
    return json.loads(ok(stack.lab.run("ssh", *ssh, "trainer", *launch, limit=120)).splitlines()[-1])


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Stack, Any], None, None]:
    """A cluster that is up."""
    cache = Cache.from_environment()
    build(cache.rlinf, cache.uv)
    with stack_on_aws(tmp_path_factory.mktemp("aws"), "-ec2l") as (stack, ec2):
        settings(stack)
        stack.up()
        yield stack, ec2


@pytest.mark.long
class TestAnInstance:
    """It may be stopped, be another one or be terminated by somebody else: the others stay as they are."""

    def test_rlinf_takes_the_output_with_its_head_on_aws(self, running: tuple[Stack, Any]) -> None:
        stack, _ = running
        assert seen_by_rlinf(stack) == SEEN

    def test_stopped_and_started_it_is_back_at_its_address(self, running: tuple[Stack, Any]) -> None:
        stack, ec2 = running
        before = instances(ec2)["trainer"]
        ec2.stop_instances(InstanceIds=[before["InstanceId"]])
        ec2.get_waiter("instance_stopped").wait(InstanceIds=[before["InstanceId"]])
        ec2.start_instances(InstanceIds=[before["InstanceId"]])
        after = instances(ec2)["trainer"]
        assert after["PublicIpAddress"] == before["PublicIpAddress"]
        assert "unchanged" in stack.up()
        settings(stack, after_the_stop)
        stack.up()  # every script checks its part, and the gate opens again

    def test_rebooted_from_inside_it_is_back_and_rlinf_goes_on(self, running: tuple[Stack, Any]) -> None:
        stack, ec2 = running
        identifier = instances(ec2)["trainer"]["InstanceId"]
        before = hosts.leader(stack.lab.name, identifier)
        ok(stack.lab.exec(identifier, "systemctl", "--no-block", "reboot"))
        assert wait_for(lambda: hosts.leader(stack.lab.name, identifier) not in {before, None} or None, 90)
        wait_for_login(stack, "trainer")
        assert instances(ec2)["trainer"]["State"]["Name"] == "running"
        assert seen_by_rlinf(stack) == SEEN
        assert "unchanged" in stack.up()

    def test_another_type_is_another_one_in_its_place_and_the_edge_goes_on(self, running: tuple[Stack, Any]) -> None:
        stack, ec2 = running
        settings(stack, after_the_stop)
        stack.up()  # whatever was selected to run before
        before, edge = instances(ec2), service_pids(stack, EDGE)
        settings(stack, larger)
        told = stack.up()
        after = instances(ec2)
        assert "edge-1-overlay" not in told
        assert after["bootstrap"]["InstanceId"] == before["bootstrap"]["InstanceId"]
        assert after["trainer"]["InstanceId"] != before["trainer"]["InstanceId"]
        assert after["trainer"]["PublicIpAddress"] == before["trainer"]["PublicIpAddress"]
        assert service_pids(stack, EDGE)["rlinf-easytier.service"] == edge["rlinf-easytier.service"]
        assert seen_by_rlinf(stack) == SEEN

    def test_a_first_boot_that_failed_is_a_warning_where_nothing_is_missing(self, running: tuple[Stack, Any]) -> None:
        stack, _ = running
        edge = service_pids(stack, EDGE)
        settings(stack, helped)
        told = stack.up()
        assert "helper: warning: its first boot failed: status: error" in told
        assert [row["rank"] for row in stack.outputs()["nodes"]] == [None, 0, 1, 2]
        assert service_pids(stack, EDGE) == edge

    def test_a_spot_instance_that_is_taken_back_comes_again_by_an_update_that_refreshes(
        self, running: tuple[Stack, Any]
    ) -> None:
        stack, ec2 = running
        before, edge = instances(ec2), service_pids(stack, EDGE)
        assert before["helper"]["InstanceLifecycle"] == "spot"
        ec2.terminate_instances(InstanceIds=[before["helper"]["InstanceId"]])
        assert "unchanged" in stack.up()  # it asks neither AWS nor the hosts
        assert "helper" not in instances(ec2)
        stack.up("--refresh")
        after = instances(ec2)
        assert after["helper"]["InstanceId"] != before["helper"]["InstanceId"]
        assert after["helper"]["PublicIpAddress"] == before["helper"]["PublicIpAddress"]
        for name in ("bootstrap", "trainer"):
            assert after[name]["InstanceId"] == before[name]["InstanceId"]
        assert service_pids(stack, EDGE) == edge

    def test_a_lost_one_is_given_back_and_the_others_go_on(self, running: tuple[Stack, Any]) -> None:
        stack, ec2 = running
        settings(stack, helped)
        stack.up()  # whatever was selected to run before
        edge = service_pids(stack, EDGE)
        settings(stack, without_helper)
        stack.up()
        assert set(instances(ec2)) == {"bootstrap", "trainer"}
        # Ray on the head misses a machine after five checks of up to 13 s, and RLinf asks every node that Ray counts.
        head = instances(ec2)["trainer"]["InstanceId"]
        alive = "import ray; ray.init(logging_level='ERROR'); print(sum(node['Alive'] for node in ray.nodes()))"
        assert wait_for(lambda: ray_python(stack, head, alive).split()[-1] == "2" or None, 120)
        assert seen_by_rlinf(stack) == SEEN
        settings(stack, larger)
        assert "Resources:" in stack.up()
        assert service_pids(stack, EDGE) == edge

    def test_terminated_by_somebody_else_they_are_forgotten_in_bounded_time(self, running: tuple[Stack, Any]) -> None:
        stack, ec2 = running
        ec2.terminate_instances(InstanceIds=[each["InstanceId"] for each in instances(ec2).values()])
        began = time.monotonic()
        stack.pulumi("destroy", "--yes", "--skip-preview")
        assert time.monotonic() - began < 60
        assert left(ec2) == []
