"""What the program asks AWS for, and what it makes of the hosts that it gets."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from components.host import LIBEXEC
from config.load import Refused, parse
from tests.example_settings import guide
from tests.program.aws_account import ANSWERS, PUBLIC_KEY, guide_on_aws
from tests.program.harness import Recorder, plain, run_program, settings_of
from tests.program.policy import violations

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "config").glob("Pulumi.example-*.yaml"))
RULE = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"


def run(raw: dict[str, Any]) -> Recorder:
    """What the program asks for with these settings."""
    return run_program(raw, recorder=Recorder(answers=ANSWERS))


def inputs(recorder: Recorder, name: str) -> dict[str, Any]:
    """What a resource was asked for with."""
    return recorder.resources[name].inputs


def of_cloud(change: dict[str, Any]) -> dict[str, Any]:
    """The inputs of the cloud node's instance, with more under its `aws`."""
    raw = guide_on_aws()
    raw["cloud"][0]["aws"] |= change
    return inputs(run(raw), "cloud-1-instance")


def refused(raw: dict[str, Any]) -> str:
    """What the program says of settings that AWS has something against."""
    with pytest.raises(Refused) as caught:
        run(raw)
    return caught.value.message


class TestTheInstance:
    """Each setting reaches the argument of EC2 that it is named after."""

    def test_by_default_it_is_small_encrypted_on_demand_and_answers_sessions_only(self) -> None:
        recorder = run(guide_on_aws())
        found = inputs(recorder, "bootstrap-instance")
        assert found["instanceType"] == "t3.small"
        assert found["rootBlockDevice"] == {
            "volumeSize": 16,
            "volumeType": "gp3",
            "encrypted": True,
            "deleteOnTermination": True,
        }
        assert found["metadataOptions"] == {
            "httpEndpoint": "enabled",
            "httpTokens": "required",
            "httpPutResponseHopLimit": 1,
        }
        assert found["monitoring"] is False
        assert not {
            "instanceMarketOptions",
            "capacityReservationSpecification",
            "placementGroup",
            "iamInstanceProfile",
            "subnetId",
        } & set(found)

    def test_a_host_with_gpus_boots_the_image_with_their_driver_on_a_disk_that_holds_it(self) -> None:
        recorder = run(guide_on_aws())
        assert "/debian/release/" in inputs(recorder, "bootstrap-instance")["ami"]
        cloud = inputs(recorder, "cloud-1-instance")
        assert "/deeplearning/ami/x86_64/" in cloud["ami"]
        assert cloud["rootBlockDevice"]["volumeSize"] == 200

    def test_the_image_is_one_for_the_architecture_of_the_type(self) -> None:
        raw = guide_on_aws()
        raw["bootstrap"]["aws"] = {"instance_type": "t4g.small", "image": "ubuntu"}
        ami = inputs(run(raw), "bootstrap-instance")["ami"]
        assert "/ubuntu/" in ami
        assert "/arm64/" in ami

    def test_an_image_of_ones_own_is_taken_with_its_account(self) -> None:
        raw = guide_on_aws()
        raw["bootstrap"]["aws"]["ami"] = "ami-0123456789abcdef0"
        raw["bootstrap"]["ssh"] = {"user": "ec2-user"}
        recorder = run(raw)
        assert inputs(recorder, "bootstrap-instance")["ami"] == "ami-0123456789abcdef0"
        assert plain(recorder.commands["bootstrap-prepare"]["connection"])["user"] == "ec2-user"

    def test_an_image_lets_in_its_own_account_unless_the_host_says_otherwise(self) -> None:
        raw = guide_on_aws()
        raw["ssh"] = {"user": "robot"}
        raw["cloud"][0]["ssh"] = {"user": "trainer"}
        commands = run(raw).commands
        users = [
            plain(commands[f"{name}-prepare"]["connection"])["user"] for name in ("bootstrap", "cloud-1", "edge-1")
        ]
        assert users == ["admin", "trainer", "robot"]

    def test_the_disk_is_the_hosts_over_the_clusters(self) -> None:
        raw = guide_on_aws()
        raw["aws"]["root_volume"] = {"type": "io2", "iops": 4000, "kms_key_id": "alias/mine"}
        raw["cloud"][0]["aws"]["root_volume"] = {"size": 500, "iops": 16000}
        assert inputs(run(raw), "cloud-1-instance")["rootBlockDevice"] == {
            "volumeSize": 500,
            "volumeType": "io2",
            "iops": 16000,
            "kmsKeyId": "alias/mine",
            "encrypted": True,
            "deleteOnTermination": True,
        }

    def test_a_gp3_disk_has_the_throughput_it_is_given(self) -> None:
        found = of_cloud({"root_volume": {"iops": 6000, "throughput": 1000}})["rootBlockDevice"]
        assert (found["iops"], found["throughput"]) == (6000, 1000)

    @pytest.mark.parametrize(
        ("spot", "options"),
        [
            (True, {"spotInstanceType": "one-time", "instanceInterruptionBehavior": "terminate"}),
            (
                {"max_price": 1.5},
                {"maxPrice": "1.5", "spotInstanceType": "one-time", "instanceInterruptionBehavior": "terminate"},
            ),
        ],
    )
    def test_spot_is_bought_once(self, spot: Any, options: dict[str, str]) -> None:
        assert of_cloud({"spot": spot})["instanceMarketOptions"] == {"marketType": "spot", "spotOptions": options}

    def test_a_host_may_be_on_demand_where_the_others_are_spot(self) -> None:
        raw = guide_on_aws()
        raw["aws"]["spot"] = True
        raw["bootstrap"]["aws"]["spot"] = False
        recorder = run(raw)
        assert "instanceMarketOptions" not in inputs(recorder, "bootstrap-instance")
        assert "instanceMarketOptions" in inputs(recorder, "cloud-1-instance")

    @pytest.mark.parametrize(
        ("choice", "specification"),
        [
            ("open", {"capacityReservationPreference": "open"}),
            ("none", {"capacityReservationPreference": "none"}),
            (
                "cr-0123456789abcdef0",
                {"capacityReservationTarget": {"capacityReservationId": "cr-0123456789abcdef0"}},
            ),
        ],
    )
    def test_a_capacity_reservation_is_asked_for(self, choice: str, specification: dict[str, Any]) -> None:
        assert of_cloud({"capacity_reservation": choice})["capacityReservationSpecification"] == specification

    def test_what_exists_is_named_as_it_is(self) -> None:
        found = of_cloud(
            {
                "placement_group": "near",
                "instance_profile": "reads-models",
                "monitoring": True,
                "subnet_id": "subnet-0123456789abcdef0",
                "security_groups": ["sg-0123456789abcdef0"],
            }
        )
        assert found["placementGroup"] == "near"
        assert found["iamInstanceProfile"] == "reads-models"
        assert found["monitoring"] is True
        assert found["subnetId"] == "subnet-0123456789abcdef0"
        assert found["vpcSecurityGroupIds"] == ["cloud-1-group-id", "sg-0123456789abcdef0"]

    def test_tags_are_everywhere(self) -> None:
        raw = guide_on_aws()
        raw["aws"]["tags"] = {"team": "robots", "cost": 7}
        raw["cloud"][0]["aws"]["tags"] = {"team": "training"}
        recorder = run(raw)
        found = inputs(recorder, "cloud-1-instance")
        assert found["tags"] == {
            "team": "training",
            "cost": "7",
            "Name": "test-cloud-1",
            "rlinf-cloud-edge:project": "rlinf-cloud-edge",
            "rlinf-cloud-edge:stack": "test",
        }
        assert found["volumeTags"] == found["tags"]
        assert inputs(recorder, "bootstrap-instance")["tags"]["team"] == "robots"
        assert inputs(recorder, "login-key")["tags"]["team"] == "robots"

    def test_another_type_is_another_instance_and_the_old_one_goes_first(self) -> None:
        asked = run(guide_on_aws()).requests["cloud-1-instance"]
        assert asked["replaceOnChanges"] == ["instanceType"]
        assert asked["deleteBeforeReplace"] is True


class TestTheFirstBoot:
    """cloud-init gives the instance the host key that is pinned, and nothing else has it."""

    def user_data(self, recorder: Recorder) -> dict[str, Any]:
        text = base64.b64decode(plain(inputs(recorder, "cloud-1-instance")["userDataBase64"])).decode()
        first, _, rest = text.partition("\n")
        assert first == "#cloud-config"
        return json.loads(rest)

    def test_the_pinned_key_is_the_only_one_of_the_host(self) -> None:
        recorder = run(guide_on_aws())
        found = self.user_data(recorder)
        assert found["ssh_keys"] == {
            "ed25519_private": "canary-host-key of cloud-1-host-key",
            "ed25519_public": "ssh-ed25519 AAAAcloud-1-host-key",
        }
        assert found["ssh_deletekeys"] is True
        assert found["ssh_genkeytypes"] == []
        connection = plain(recorder.commands["cloud-1-prepare"]["connection"])
        assert connection["hostKey"] == "ssh-ed25519 AAAAcloud-1-host-key"

    def test_the_private_half_is_a_secret_and_nowhere_in_plain_text(self) -> None:
        recorder = run(guide_on_aws())
        assert recorder.requests["cloud-1-host-key"]["additionalSecretOutputs"] == ["private_key"]
        for name, args in recorder.resources.items():
            for key, value in args.inputs.items():
                if key != "userDataBase64":
                    assert "canary-host-key" not in json.dumps(value), (name, key)
        assert "canary-host-key" not in json.dumps(recorder.exports)

    def test_what_a_cloud_image_may_lack_is_installed_and_waited_for(self) -> None:
        recorder = run(guide_on_aws())
        assert {"nftables", "unzip"} <= set(self.user_data(recorder)["packages"])
        assert "\nCLOUD_INIT_LIMIT=900\n" in plain(recorder.commands["cloud-1-check"]["stdin"])
        assert "CLOUD_INIT_LIMIT=9" not in plain(recorder.commands["edge-1-check"]["stdin"])

    def test_a_fresh_instance_is_dialled_for_minutes(self) -> None:
        commands = run(guide_on_aws()).commands
        dials = {
            name: plain(commands[f"{name}-prepare"]["connection"])["dialErrorLimit"] for name in ("cloud-1", "edge-1")
        }
        assert dials["cloud-1"] > 3 * dials["edge-1"]


class TestTheNetwork:
    """Only SSH from given ranges and EasyTier get in; the default VPC, a given subnet, or one of the cluster's own."""

    def let_in(self, recorder: Recorder, name: str) -> set[tuple[str, int, str]]:
        return {
            (args.inputs["ipProtocol"], int(args.inputs["fromPort"]), args.inputs["cidrIpv4"])
            for args in recorder.resources.values()
            if args.typ == RULE and args.inputs["securityGroupId"] == f"{name}-group-id"
        }

    def test_a_bootstrap_and_a_cloud_node_let_in_ssh_from_given_ranges_and_easytier(self) -> None:
        recorder = run(guide_on_aws())
        expected = {("tcp", 22, "198.51.100.7/32"), ("tcp", 11010, "0.0.0.0/0"), ("udp", 11010, "0.0.0.0/0")}
        assert self.let_in(recorder, "bootstrap") == expected
        assert self.let_in(recorder, "cloud-1") == expected

    def test_ports_and_ranges_follow_the_settings(self) -> None:
        raw = guide_on_aws()
        raw["overlay"] = {"port": 12010}
        raw["bootstrap"]["ssh"] = {"port": 2222}
        raw["bootstrap"]["aws"] |= {"ssh_from": "anywhere", "easytier_from": ["192.0.2.0/24", "198.51.100.0/24"]}
        assert self.let_in(run(raw), "bootstrap") == {
            ("tcp", 2222, "0.0.0.0/0"),
            *((protocol, 12010, cidr) for protocol in ("tcp", "udp") for cidr in ("192.0.2.0/24", "198.51.100.0/24")),
        }

    def test_an_edge_on_aws_lets_in_ssh_alone(self) -> None:
        raw = guide_on_aws()
        raw["edges"][0] = {"name": "edge-1", "overlay_ip": "10.10.0.11", "aws": {"instance_type": "t3.small"}}
        recorder = run(raw)
        assert self.let_in(recorder, "edge-1") == {("tcp", 22, "198.51.100.7/32")}
        assert inputs(recorder, "edge-1-instance")["rootBlockDevice"]["volumeSize"] == 64

    def test_a_host_that_is_reached_through_another_lets_that_one_in(self) -> None:
        raw = guide_on_aws()
        raw["cloud"][0]["ssh"] = {"jump": "bootstrap"}
        recorder = run(raw)
        address = recorder.exports["ssh_config"].split("HostName ")[1].split()[0]
        assert ("tcp", 22, f"{address}/32") in self.let_in(recorder, "cloud-1")
        connection = plain(recorder.commands["cloud-1-prepare"]["connection"])
        assert connection["proxy"]["host"] == address

    def test_a_group_is_in_the_default_vpc_or_in_that_of_the_subnet(self) -> None:
        raw = guide_on_aws()
        raw["cloud"][0]["aws"]["subnet_id"] = "subnet-0123456789abcdef0"
        recorder = run(raw)
        assert inputs(recorder, "bootstrap-group")["vpcId"] == "vpc-default"
        assert inputs(recorder, "cloud-1-group")["vpcId"] == "vpc-of-subnet"

    def test_a_vpc_of_its_own_has_one_subnet_with_a_way_out(self) -> None:
        raw = guide_on_aws()
        raw["aws"]["vpc"] = {"cidr": "10.77.0.0/26", "zone": "eu-central-1b"}
        recorder = run(raw)
        assert inputs(recorder, "network-vpc")["cidrBlock"] == "10.77.0.0/26"
        subnet = inputs(recorder, "network-subnet")
        assert (subnet["cidrBlock"], subnet["availabilityZone"]) == ("10.77.0.0/26", "eu-central-1b")
        route = inputs(recorder, "network-route")
        assert (route["destinationCidrBlock"], route["gatewayId"]) == ("0.0.0.0/0", "network-gateway-id")
        assert inputs(recorder, "network-routes-of-subnet")["subnetId"] == "network-subnet-id"
        for name in ("bootstrap", "cloud-1"):
            assert inputs(recorder, f"{name}-instance")["subnetId"] == "network-subnet-id"
            assert inputs(recorder, f"{name}-group")["vpcId"] == "network-vpc-id"
            # Released before the gateway goes, and there when the first boot wants the Internet.
            assert "network-gateway" in recorder.requests[f"{name}-address"]["dependencies"]
            assert "network-route" in recorder.requests[f"{name}-instance"]["dependencies"]

    def test_everything_may_go_out(self) -> None:
        out = inputs(run(guide_on_aws()), "cloud-1-out")
        assert (out["ipProtocol"], out["cidrIpv4"]) == ("-1", "0.0.0.0/0")


class TestTheKeyPair:
    """The public half of the key that Pulumi logs in with, or a key pair that exists."""

    def test_one_is_made_of_the_public_key(self) -> None:
        recorder = run(guide_on_aws())
        assert inputs(recorder, "login-key")["publicKey"] == PUBLIC_KEY
        assert inputs(recorder, "cloud-1-instance")["keyName"] == inputs(recorder, "login-key")["keyName"]

    def test_another_key_replaces_no_instance(self) -> None:
        raw = guide_on_aws()
        before = run(raw)
        raw["aws"]["public_key"] = PUBLIC_KEY.replace("AwMDAw", "AxMDAw", 1)
        after = run(raw)
        assert inputs(before, "login-key") != inputs(after, "login-key")
        assert inputs(before, "cloud-1-instance") == inputs(after, "cloud-1-instance")

    def test_one_that_exists_is_named(self) -> None:
        raw = guide_on_aws()
        raw["aws"] = {"key_name": "mine", "ssh_from": "anywhere"}
        recorder = run(raw)
        assert "login-key" not in recorder.resources
        assert inputs(recorder, "cloud-1-instance")["keyName"] == "mine"

    def test_it_may_be_in_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "id_ed25519"
        private = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        file.write_bytes(private)
        file.with_suffix(".pub").write_text(f"{PUBLIC_KEY} me@here\n")
        raw = guide_on_aws()
        del raw["aws"]["public_key"]
        raw["ssh"]["key_file"] = str(file)
        assert inputs(run(raw), "login-key")["publicKey"] == f"{PUBLIC_KEY} me@here"
        raw["aws"]["public_key"] = f"{file}.pub"
        assert inputs(run(raw), "login-key")["publicKey"] == f"{PUBLIC_KEY} me@here"

    def test_without_one_the_settings_are_refused(self) -> None:
        raw = guide_on_aws()
        del raw["aws"]["public_key"]
        assert "cluster.aws.public_key\n" in refused(raw)

    @pytest.mark.parametrize("key", ["ecdsa-sha2-nistp256 AAAA", "ssh-ed25519 nonsense", "/nonexistent/id.pub"])
    def test_one_that_ec2_does_not_take_is_refused(self, key: str) -> None:
        raw = guide_on_aws()
        raw["aws"]["public_key"] = key
        assert "cluster.aws.public_key: " in refused(raw)


class TestTheHost:
    """From here on nobody cares where it came from."""

    def test_its_address_and_host_key_reach_the_connection_the_peers_and_the_outputs(self) -> None:
        recorder = run(guide_on_aws())
        addresses = {
            name: plain(recorder.commands[f"{name}-prepare"]["connection"])["host"] for name in ("bootstrap", "cloud-1")
        }
        edge = settings_of(recorder.commands["edge-1-overlay"])
        assert edge["PEERS"].split() == [f"tcp://{address}:11010" for address in addresses.values()]
        assert 'uri = "tcp://' + addresses["bootstrap"] in base64.b64decode(edge["TOML_BASE64"]).decode()
        reached = {row["name"]: row["reached"] for row in recorder.exports["nodes"]}
        assert reached["bootstrap"] == f"admin@{addresses['bootstrap']}:22"
        assert f"HostName {addresses['cloud-1']}\n" in recorder.exports["ssh_config"]
        assert "KnownHostsCommand /bin/echo cloud-1 ssh-ed25519 AAAAcloud-1-host-key" in recorder.exports["ssh_config"]

    def test_an_edge_is_reached_through_an_instance_once_that_has_its_address(self) -> None:
        recorder = run(guide_on_aws())
        proxy = plain(recorder.commands["edge-1-prepare"]["connection"])["proxy"]
        assert proxy["hostKey"] == "ssh-ed25519 AAAAbootstrap-host-key"
        assert "bootstrap-address-of-instance" in recorder.requests["edge-1-check"]["dependencies"]

    def test_another_instance_is_set_up_from_the_beginning(self) -> None:
        commands = run(guide_on_aws()).commands
        for step in ("check", "prepare", "overlay", "ray", "gate"):
            assert commands[f"cloud-1-{step}"]["triggers"] == ["cloud-1-instance-id"]

    def test_nothing_is_undone_on_a_machine_that_goes(self) -> None:
        recorder = run(guide_on_aws())
        for name in recorder.commands:
            host, _, _ = name.rpartition("-")
            expected = "" if host == "edge-1" else f"{host}-instance"
            assert recorder.requests[name]["deletedWith"] == expected, name
        assert recorder.requests["cloud-1-address-of-instance"]["deletedWith"] == "cloud-1-instance"

    def test_a_lost_one_is_given_back_to_aws(self) -> None:
        raw = guide_on_aws()
        raw["cloud"].append(raw["cloud"][0] | {"name": "cloud-2", "overlay_ip": "10.10.0.20", "lost": True})
        recorder = run(raw)
        assert not [name for name, args in recorder.resources.items() if "cloud-2" in name and "aws:" in args.typ]
        assert recorder.requests["cloud-2-prepare"]["retainOnDelete"] is True
        assert "Host cloud-2" not in recorder.exports["ssh_config"]

    def test_the_scripts_are_the_same_as_on_any_host(self) -> None:
        assert run(guide_on_aws()).commands["cloud-1-ray"]["create"].startswith(f"exec sudo -n {LIBEXEC}/ray.sh up")


class TestTheAccount:
    """What AWS knows better is asked in the preview, before anything is created, and all faults are told at once."""

    def test_what_costs_money_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        told: list[str] = []

        def note(text: str, *_: object) -> None:
            told.append(text)

        monkeypatch.setattr(pulumi.log, "info", note)
        raw = guide_on_aws()
        raw["cloud"][0]["aws"] |= {"spot": {"max_price": "2.5"}, "root_volume": {"iops": 6000}, "monitoring": True}
        run(raw)
        assert "bootstrap: t3.small on demand, 16 GiB of gp3, one elastic IP" in told
        assert (
            "cloud-1: g6e.12xlarge spot, at most $2.5 an hour, 200 GiB of gp3 with 6000 IOPS, one elastic IP, "
            "detailed monitoring"
        ) in told

    def test_all_that_is_wrong_is_told_at_once(self) -> None:
        raw = guide_on_aws()
        raw["bootstrap"]["aws"]["instance_type"] = "t3.smal"
        raw["cloud"][0]["aws"]["subnet_id"] = "subnet-00000000000000000"
        raw["cloud"][0]["ssh"] = {"user": "ubuntu"}
        message = refused(raw)
        assert "2 faults; nothing was changed" in message
        assert "cluster.bootstrap.aws.instance_type: t3.smal\n" in message
        assert "cluster.cloud[0].aws.subnet_id: subnet-00000000000000000\n" in message

    @pytest.mark.parametrize(
        ("ami", "rule"),
        [
            ("ami-00000000000000000", "the region has no such image"),
            ("ami-0aaaaaaaaaaaaaaa0", "g6e.12xlarge is x86_64, and this image is aarch64"),
        ],
    )
    def test_an_image_that_will_not_boot_is_refused(self, ami: str, rule: str) -> None:
        raw = guide_on_aws()
        raw["cloud"][0] |= {"aws": {"instance_type": "g6e.12xlarge", "ami": ami}, "ssh": {"user": "ubuntu"}}
        message = refused(raw)
        assert f"cluster.cloud[0].aws.ami: {ami}\n" in message
        assert rule in message

    @pytest.mark.parametrize(
        ("type_", "gpus", "rule"),
        [
            ("g6e.12xlarge", 8, "g6e.12xlarge has 4 accelerators"),
            ("t3.small", 1, "t3.small has no accelerator"),
        ],
    )
    def test_more_gpus_than_a_type_has_are_refused(self, type_: str, gpus: int, rule: str) -> None:
        raw = guide_on_aws()
        raw["cloud"][0] |= {"aws": {"instance_type": type_}, "gpus": gpus}
        raw["rlinf"]["component_placement"]["actor"] = {"node_group": "cloud", "placement": "0"}
        message = refused(raw)
        assert f"cluster.cloud[0].gpus: {gpus}\n" in message
        assert rule in message

    def test_a_network_that_meets_the_overlays_range_is_refused(self) -> None:
        raw = guide_on_aws()
        raw["overlay"] = {"cidr": "172.20.0.0/16"}
        for host, last in (("bootstrap", 1), ("cloud", 10), ("edges", 11)):
            entry = raw[host] if host == "bootstrap" else raw[host][0]
            entry["overlay_ip"] = f"172.20.1.{last}"
        raw["cloud"][0]["aws"]["subnet_id"] = "subnet-0123456789abcdef0"
        assert "172.20.1.0/24, must not overlap the overlay's range, 172.20.0.0/16" in refused(raw)

    @pytest.mark.parametrize(
        ("error", "rule"),
        [
            ("No valid credential sources found. Please see https://…", "Pulumi finds no credentials for AWS"),
            ("Missing region configuration", "no AWS region, or an unknown one, is set"),
            (
                "ExpiredToken: The security token included in the request is expired",
                "AWS does not take the credentials",
            ),
        ],
    )
    def test_without_credentials_or_region_there_is_one_error(
        self, error: str, rule: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(_: dict[str, Any]) -> dict[str, Any]:
            raise ValueError(error)

        monkeypatch.setitem(ANSWERS, "aws:index/getCallerIdentity:getCallerIdentity", fail)
        message = refused(guide_on_aws())
        assert "one fault" in message
        assert rule in message

    def test_a_region_without_a_default_vpc_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(_: dict[str, Any]) -> dict[str, Any]:
            raise ValueError("reading EC2 VPC: no matching EC2 VPC found")

        monkeypatch.setitem(ANSWERS, "aws:ec2/getVpc:getVpc", fail)
        message = refused(guide_on_aws())
        assert "cluster.aws.vpc\n" in message
        assert "one fault" in message


def test_a_stack_without_such_a_host_imports_no_pulumi_aws_and_calls_no_function() -> None:
    program = (
        "import json, sys\n"
        "sys.modules['pulumi_aws'] = None\n"  # an import of it fails
        "from tests.program.harness import run_program\n"
        "print(sorted(run_program(json.loads(sys.stdin.read())).commands))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(guide()),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    assert "'cloud-1-gate'" in done.stdout


_RANGES = st.one_of(
    st.just("anywhere"),
    st.lists(
        st.integers(0, 255).map("198.{}.0.0/16".format),
        min_size=1,
        max_size=3,
        unique=True,
    ),
)
_CHOICES = st.fixed_dictionaries(
    {"ssh_from": _RANGES},
    optional={
        "easytier_from": _RANGES,
        "spot": st.booleans(),
        "monitoring": st.booleans(),
        "image": st.sampled_from(["debian", "ubuntu", "deep-learning"]),
        "root_volume": st.fixed_dictionaries({"size": st.integers(16, 2000)}),
        "tags": st.dictionaries(st.sampled_from(["team", "cost-center"]), st.sampled_from(["a", "b"])),
    },
)


class TestThePolicy:
    """No Ray port, no open SSH that nobody asked for, encryption, IMDSv2 and tags: whatever the settings say."""

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(
        shared=_CHOICES,
        own=_CHOICES,
        port=st.sampled_from([11010, 443]),
        ssh=st.sampled_from([22, 2222]),
        vpc=st.booleans(),
    )
    def test_it_holds_for_any_settings(
        self, shared: dict[str, Any], own: dict[str, Any], port: int, ssh: int, vpc: bool
    ) -> None:
        raw = guide_on_aws()
        raw["aws"] |= shared | ({"vpc": {}} if vpc else {})
        raw["cloud"][0]["aws"] |= own
        raw["overlay"] = {"port": port}
        raw["ssh"]["port"] = ssh
        assert violations(run(raw), parse(raw)) == []

    @pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
    def test_it_holds_for_every_example(self, path: Path) -> None:
        raw = yaml.safe_load(path.read_text())["config"]["rlinf-cloud-edge:cluster"]
        if "aws" not in json.dumps(raw):
            return
        assert violations(run(raw), parse(raw)) == []

    @pytest.mark.parametrize(
        ("name", "change", "fault"),
        [
            ("cloud-1-instance", {"rootBlockDevice": {"deleteOnTermination": True}}, "is not encrypted"),
            ("cloud-1-instance", {"metadataOptions": {"httpTokens": "optional"}}, "IMDSv1"),
            ("cloud-1-instance", {"tags": {}}, "has not all of our tags"),
            ("cloud-1-instance", {"userDataBase64": "eA=="}, "is no secret"),
            ("cloud-1-out", {"tags": {"Name": "x"}}, "has not all of our tags"),
            ("cloud-1-group", {"ingress": []}, "has rules of its own"),
            ("bootstrap-ssh-tcp-198.51.100.7-32", {"cidrIpv4": "0.0.0.0/0"}, "SSH from everywhere"),
            ("bootstrap-ssh-tcp-198.51.100.7-32", {"fromPort": 6379, "toPort": 6379}, "a port of Ray: 6379"),
            ("bootstrap-ssh-tcp-198.51.100.7-32", {"fromPort": 20150, "toPort": 20150}, "a port of Ray: 20150"),
            ("bootstrap-ssh-tcp-198.51.100.7-32", {"fromPort": 0, "toPort": 65535}, "more than one port"),
            ("bootstrap-ssh-tcp-198.51.100.7-32", {"ipProtocol": "-1"}, "more than one port"),
        ],
    )
    def test_it_finds_each_breach(self, name: str, change: dict[str, Any], fault: str) -> None:
        raw = guide_on_aws()
        recorder = run(raw)
        inputs(recorder, name).update(change)
        assert any(found.startswith(f"{name}: ") and fault in found for found in violations(recorder, parse(raw)))
