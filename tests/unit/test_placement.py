"""RLinf's placement grammar, read as RLinf 0.3.0 reads it."""

from __future__ import annotations

import pytest

from config.placement import PlacementError, place
from config.ranks import ACCELERATOR, Group, Resource


def group(label: str, counts: dict[int, int], type_: str | None = ACCELERATOR) -> Group:
    """A group whose hosts, by rank, have that many resources."""
    resources = tuple(Resource(rank, type_) for rank, count in counts.items() for _ in range(count))
    return Group(label, tuple(counts), type_, resources)


GPUS = group("gpu", {0: 4, 1: 4})
HOSTS = group("edge", {2: 1, 3: 1, 4: 1}, None)
ARMS = group("arms", {2: 1, 3: 2}, "Franka")


def nodes(text: str, *groups: Group) -> list[int]:
    """The node rank of each process."""
    return [process.node_rank for process in place(groups, text)]


def refused(text: str, *groups: Group) -> str:
    with pytest.raises(PlacementError) as caught:
        place(groups, text)
    return caught.value.rule


class TestWhatIsAccepted:
    """Each form of the grammar puts each process where RLinf puts it."""

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("0-3", [0, 0, 0, 0]),
            ("5", [1]),
            ("all", [0] * 4 + [1] * 4),
            ("ALL", [0] * 4 + [1] * 4),
            ("0-7:0-3", [0, 0, 1, 1]),
            ("0-3:0", [0]),
            ("4:0-2", [1, 1, 1]),
            ("0-1:0-3,3-4,6-7:6-9", [0] * 4 + [0, 1] + [1] * 4),
            ("0:0-1, 4:2-4", [0, 0, 1, 1, 1]),
            (" 0 - 1 ".replace(" - ", "-"), [0, 0]),
            ("0-1,", [0, 0]),
        ],
    )
    def test_accelerators(self, text: str, expected: list[int]) -> None:
        assert nodes(text, GPUS) == expected

    def test_hosts_where_there_are_no_accelerators(self) -> None:
        assert nodes("0-2:0-5", HOSTS) == [2, 2, 3, 3, 4, 4]

    def test_robots_where_there_are_some(self) -> None:
        assert nodes("all", ARMS) == [2, 3, 3]

    def test_resources_of_several_groups_are_numbered_in_the_order_named(self) -> None:
        assert nodes("3-4,8-9", GPUS, ARMS) == [0, 1, 2, 3]

    def test_the_resources_of_a_process_are_told(self) -> None:
        assert [process.resources for process in place([GPUS], "0-3:0-1")] == [(0, 1), (2, 3)]
        assert place([HOSTS], "0")[0].resources == ()


class TestWhatIsRefused:
    """Each rule of RLinf's parser, and of its placement strategies, has a message of ours."""

    @pytest.mark.parametrize("text", ["0-x", "0-1-2", "-1", "1-", "x", "0.5", "0 1", "0:1:2", "+1", "all-1"])
    def test_what_is_no_rank_or_range(self, text: str) -> None:
        assert "ranks are a number such as 2 or a range such as 0-3" in refused(text, GPUS)

    @pytest.mark.parametrize("text", ["", ",", " , "])
    def test_nothing(self, text: str) -> None:
        assert refused(text, GPUS) == "a placement names at least one resource"

    @pytest.mark.parametrize("text", ["8", "0-8", "0-3,9"])
    def test_resource_ranks_out_of_range(self, text: str) -> None:
        assert refused(text, GPUS) == "the group gpu has 8 accelerators: resource ranks go from 0 to 7"

    @pytest.mark.parametrize("text", ["0,0", "0-3,2-5", "4,0", "0-1,all"])
    def test_resource_ranks_that_do_not_ascend(self, text: str) -> None:
        assert "resource ranks ascend and each stands once" in refused(text, GPUS)

    def test_a_range_downwards(self) -> None:
        assert "a range goes upwards" in refused("3-0", GPUS)

    @pytest.mark.parametrize("text", ["0:1", "0-1:0-1,2:3", "0:0-1,1:1-2", "0:0-1,1:0"])
    def test_process_ranks_that_are_not_continuous_from_0(self, text: str) -> None:
        assert "process ranks are continuous from 0" in refused(text, GPUS)

    @pytest.mark.parametrize("text", ["0:all", "0:"])
    def test_process_ranks_are_spelled_out(self, text: str) -> None:
        assert "process ranks are a number" in refused(text, GPUS)

    @pytest.mark.parametrize("text", ["0-2:0-1", "0-1:0-2"])
    def test_counts_of_which_none_divides_the_other(self, text: str) -> None:
        assert "the number of processes divides that of the resources" in refused(text, GPUS)

    def test_a_process_on_two_hosts(self) -> None:
        assert "resources 3, 4 are on hosts of ranks 0, 1" in refused("3-4:0", GPUS)
        assert "a process runs on one host" in refused("0-1:0", HOSTS)

    def test_a_process_with_two_types_of_hardware(self) -> None:
        accelerators = group("gpu", {2: 1})
        assert "hardware of one type" in refused("0-1:0", accelerators, group("arm", {2: 1}, "Franka"))

    def test_groups_that_are_not_named_in_the_order_of_ranks(self) -> None:
        assert "rank 0 comes after 3" in refused("all", ARMS, GPUS)

    def test_a_group_named_twice(self) -> None:
        assert "gpu stands twice" in refused("0", GPUS, GPUS)

    def test_hosts_that_are_in_both_groups(self) -> None:
        assert "rank 2 is in edge and in more" in refused("0", HOSTS, group("more", {2: 1, 5: 1}, None))

    def test_a_host_that_is_not_there_where_groups_with_and_without_hardware_are_mixed(self) -> None:
        assert "these groups have 5 hosts" in refused("all", GPUS, HOSTS)
