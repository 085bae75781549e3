"""What is wrong with the settings of hosts on AWS is told before AWS is asked."""

from __future__ import annotations

from typing import Any

import pytest

from components.aws_failure import meaning, where
from config.load import parse
from config.located import Site, located
from config.reach import way_in
from tests.example_settings import HOST_KEY
from tests.program.aws_account import guide_on_aws
from tests.settings_faults import faults, only_fault


def with_aws(shared: dict[str, Any] | None = None, own: dict[str, Any] | None = None) -> dict[str, Any]:
    """The guide's example on AWS, with more for all hosts and for the cloud node."""
    raw = guide_on_aws()
    raw["aws"] |= shared or {}
    raw["cloud"][0]["aws"] |= own or {}
    return raw


class TestOneWayIn:
    """A host exists or is created."""

    def test_a_host_that_is_neither(self) -> None:
        raw = guide_on_aws()
        del raw["bootstrap"]["aws"]
        assert only_fault(raw).key == "cluster.bootstrap.ssh.address"

    def test_a_host_that_is_both(self) -> None:
        raw = guide_on_aws()
        raw["bootstrap"]["ssh"] = {"address": "203.0.113.5"}
        assert only_fault(raw).key == "cluster.bootstrap.aws"

    @pytest.mark.parametrize(
        ("change", "key"),
        [
            ({"public_address": "203.0.113.5"}, "cluster.bootstrap.public_address"),
            ({"ssh": {"host_key": HOST_KEY}}, "cluster.bootstrap.ssh.host_key"),
        ],
    )
    def test_what_only_an_existing_host_has(self, change: dict[str, Any], key: str) -> None:
        raw = guide_on_aws()
        raw["bootstrap"] |= change
        assert only_fault(raw).key == key

    def test_direct_mode_has_no_way_between_the_hosts(self) -> None:
        raw = guide_on_aws()
        del raw["overlay"]
        assert "cluster.overlay" in [fault.key for fault in faults(raw)]


class TestWhoMayReachThem:
    """SSH is open to given ranges, and to the whole Internet only when asked for by name."""

    def test_ranges_must_be_given(self) -> None:
        raw = guide_on_aws()
        del raw["aws"]["ssh_from"]
        assert [fault.key for fault in faults(raw)] == [
            "cluster.bootstrap.aws.ssh_from",
            "cluster.cloud[0].aws.ssh_from",
        ]

    def test_a_host_behind_another_instance_needs_none(self) -> None:
        raw = guide_on_aws()
        del raw["aws"]["ssh_from"]
        raw["bootstrap"]["aws"]["ssh_from"] = "anywhere"
        raw["cloud"][0]["ssh"] = {"jump": "bootstrap"}
        parse(raw)

    @pytest.mark.parametrize("cidr", ["0.0.0.0/0", "128.0.0.0/1", "64.0.0.0/7"])
    def test_most_of_the_internet_is_asked_for_by_name(self, cidr: str) -> None:
        fault = only_fault(with_aws({"ssh_from": ["198.51.100.7/32", cidr]}))
        assert fault.key == "cluster.aws.ssh_from[1]"
        assert "anywhere" in fault.fix
        parse(with_aws({"ssh_from": "anywhere"}))

    @pytest.mark.parametrize("value", ["everywhere", "0.0.0.0/0", [], ["198.51.100.7/8"], ["::/0"]])
    def test_other_words_and_ranges_that_are_none(self, value: Any) -> None:
        assert only_fault(with_aws({"ssh_from": value})).key.startswith("cluster.aws.ssh_from")


class TestTheNetwork:
    """No range is there twice."""

    @pytest.mark.parametrize(
        ("vpc", "rule"),
        [
            ({"cidr": "10.10.0.0/16"}, "the overlay's range"),
            ({"cidr": "10.99.0.0/29"}, "/16 to /28"),
            ({"cidr": "10.0.0.0/15"}, "/16 to /28"),
            ({"cidr": "169.254.0.0/24"}, "hosts can have addresses in"),
        ],
    )
    def test_of_the_clusters_own_vpc(self, vpc: dict[str, Any], rule: str) -> None:
        found = faults(with_aws({"vpc": vpc}))
        assert found[0].key == "cluster.aws.vpc.cidr"
        assert rule in found[0].rule

    def test_the_default_vpcs_is_known(self) -> None:
        raw = guide_on_aws()
        raw["overlay"] = {"cidr": "172.31.9.0/24"}
        for entry, last in ((raw["bootstrap"], 1), (raw["cloud"][0], 10), (raw["edges"][0], 11)):
            entry["overlay_ip"] = f"172.31.9.{last}"
        assert only_fault(raw).key == "cluster.overlay.cidr"
        raw["aws"]["vpc"] = {}
        parse(raw)

    def test_a_subnet_and_a_vpc_of_its_own(self) -> None:
        fault = only_fault(with_aws({"vpc": {}}, {"subnet_id": "subnet-0123456789abcdef0"}))
        assert fault.key == "cluster.cloud[0].aws.subnet_id"


class TestTheDisk:
    """Type, size, IOPS and throughput fit together as EBS has them."""

    @pytest.mark.parametrize(
        ("volume", "key", "rule"),
        [
            ({"type": "io2"}, "iops", "is bought with its IOPS"),
            ({"type": "gp2", "iops": 3000}, "iops", "follow from its size"),
            ({"type": "io2", "iops": 3000, "throughput": 200}, "throughput", "is not chosen"),
            ({"iops": 100}, "iops", "3000 to 80000 IOPS"),
            ({"size": 10, "iops": 6000}, "iops", "3000 to 5000 IOPS"),
            ({"type": "io1", "size": 100, "iops": 6000}, "iops", "100 to 5000 IOPS"),
            ({"iops": 4000, "throughput": 1001}, "throughput", "a quarter of its IOPS"),
            ({"throughput": 751}, "throughput", "3000 IOPS by default"),
            ({"type": "gp2", "size": 20000}, "size", "at most 16384 GiB"),
            ({"size": 7}, "size", "at least 8"),
            ({"type": "standard"}, "type", "one of"),
        ],
    )
    def test_what_does_not_fit(self, volume: dict[str, Any], key: str, rule: str) -> None:
        fault = only_fault(with_aws(own={"root_volume": volume}))
        assert fault.key == f"cluster.cloud[0].aws.root_volume.{key}"
        assert rule in fault.rule

    def test_what_fits_when_both_levels_are_put_together(self) -> None:
        parse(with_aws({"root_volume": {"type": "io1", "iops": 3000, "size": 100}}, {"root_volume": {"iops": 5000}}))
        fault = faults(with_aws({"root_volume": {"throughput": 500}}, {"root_volume": {"type": "io1", "iops": 500}}))
        assert fault[0].key == "cluster.cloud[0].aws.root_volume.throughput"


class TestTheRest:
    """Each choice by itself, and choices that exclude each other."""

    @pytest.mark.parametrize(
        ("shared", "own", "key"),
        [
            ({"region": "eu-central-1"}, {}, "cluster.aws.region"),
            ({}, {"instance_type": "g6e"}, "cluster.cloud[0].aws.instance_type"),
            ({}, {"ami": "ami-xyz"}, "cluster.cloud[0].aws.ami"),
            ({}, {"image": "fedora"}, "cluster.cloud[0].aws.image"),
            ({}, {"spot": "yes"}, "cluster.cloud[0].aws.spot"),
            ({}, {"spot": {"max_price": "cheap"}}, "cluster.cloud[0].aws.spot.max_price"),
            ({}, {"capacity_reservation": "mine"}, "cluster.cloud[0].aws.capacity_reservation"),
            ({}, {"spot": True, "capacity_reservation": "open"}, "cluster.cloud[0].aws.capacity_reservation"),
            ({}, {"tags": {"aws:x": "1"}}, "cluster.cloud[0].aws.tags.aws:x"),
            ({"tags": {"Name": "x"}}, {}, "cluster.aws.tags.Name"),
            ({}, {"tags": {"a": "x" * 257}}, "cluster.cloud[0].aws.tags.a"),
            ({"tags": {f"t{n}": "" for n in range(41)}}, {}, "cluster.aws.tags"),
            ({"key_name": "mine"}, {}, "cluster.aws.public_key"),
            ({"vpc": {"zone": "eu-central-1"}}, {}, "cluster.aws.vpc.zone"),
        ],
    )
    def test_one_fault_each(self, shared: dict[str, Any], own: dict[str, Any], key: str) -> None:
        assert only_fault(with_aws(shared, own)).key == key

    def test_two_images_at_once(self) -> None:
        found = faults(with_aws(own={"ami": "ami-0123456789abcdef0", "image": "debian"}))
        assert "cluster.cloud[0].aws.ami" in [fault.key for fault in found]

    def test_an_ami_needs_the_account_that_it_lets_in(self) -> None:
        raw = with_aws(own={"ami": "ami-0123456789abcdef0"})
        del raw["ssh"]
        raw["edges"][0]["ssh"]["user"] = "robot"
        assert only_fault(raw).key == "cluster.cloud[0].ssh.user"
        raw["cloud"][0]["ssh"] = {"user": "ec2-user"}
        parse(raw)


def test_a_host_that_is_there_is_a_host_like_any_other() -> None:
    cluster = parse(guide_on_aws())
    there = located(cluster, {"bootstrap": Site("203.0.113.5", HOST_KEY), "cloud-1": Site("203.0.113.10", HOST_KEY)})
    way = way_in(there, there.bootstraps[0])
    assert way is not None
    assert (way.user, way.endpoint, way.host_key) == ("admin", "203.0.113.5:22", HOST_KEY)
    assert there.cloud[0].public_address == "203.0.113.10"
    assert there.edges == cluster.edges
    assert located(cluster, {}) is cluster


class TestWhatAwsSays:
    """Errors of AWS, as botocore and the Terraform provider word them, are explained by the setting they are about."""

    @pytest.mark.parametrize(
        ("error", "key", "word"),
        [
            (
                "creating EC2 Instance: operation error EC2: api error VcpuLimitExceeded: You have requested",
                "cluster.cloud[0].aws.instance_type",
                "quota",
            ),
            (
                "InsufficientInstanceCapacity: We currently do not have sufficient g6e.12xlarge capacity in the zone",
                "cluster.cloud[0].aws.instance_type",
                "capacity",
            ),
            (
                "Unsupported: Your requested instance type is not supported in your requested Availability Zone",
                "cluster.cloud[0].aws.instance_type",
                "zone",
            ),
            ("InvalidAMIID.NotFound: The image id '[ami-00]' does not exist", "cluster.cloud[0].aws.ami", "image"),
            ("InvalidSubnetID.NotFound: The subnet ID 'x' does not exist", "cluster.cloud[0].aws.subnet_id", "subnet"),
            ("AddressLimitExceeded: The maximum number of addresses", "cluster.cloud[0].aws", "elastic IPs"),
            ("InvalidKeyPair.Duplicate: The keypair already exists", "cluster.aws.public_key", "another stack"),
            ("InvalidKeyPair.NotFound: The key pair 'x' does not exist", "cluster.aws.key_name", "key pair"),
            (
                "InvalidBlockDeviceMapping: Volume of size 20GB is smaller than snapshot 'snap-1', expect size >= 75GB",
                "cluster.cloud[0].aws.root_volume.size",
                "does not fit",
            ),
            (
                "InvalidParameterValue: iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
                "cluster.cloud[0].aws.instance_profile",
                "instance profile",
            ),
            ("SpotMaxPriceTooLow: Your Spot request price is lower", "cluster.cloud[0].aws.spot.max_price", "price"),
            ("UnauthorizedOperation: You are not authorized to perform this operation", "aws", "not allowed"),
            ("VpcLimitExceeded: The maximum number of VPCs has been reached.", "cluster.aws.vpc", "VPCs"),
            (
                "unexpected state 'terminated', wanted target 'running'. last error: Client error on launch",
                "cluster.cloud[0].aws.root_volume.kms_key_id",
                "the key of the disk",
            ),
            ("Client.VolumeLimitExceeded: Volume limit exceeded", "cluster.cloud[0].aws.root_volume.size", "storage"),
            (
                "ModifyVolume, api error InvalidParameterValue: New size cannot be smaller than existing size",
                "cluster.cloud[0].aws.root_volume.size",
                "smaller",
            ),
            (
                "api error VolumeModificationRateExceeded: You've reached the maximum modification rate per volume.",
                "cluster.cloud[0].aws.root_volume",
                "hours",
            ),
            (
                "Resource provider reported that the resource did not exist while updating urn:pulumi:x.",
                "cluster.cloud[0].aws",
                "gone from the account",
            ),
        ],
    )
    def test_it_names_the_setting_and_what_to_do(self, error: str, key: str, word: str) -> None:
        found = meaning(error)
        assert found is not None
        assert where(found, "cluster.cloud[0]") == key
        assert word in found.rule
        assert found.fix

    def test_what_no_setting_mends_is_left_as_it_is(self) -> None:
        assert meaning("InternalError: An internal error has occurred") is None
