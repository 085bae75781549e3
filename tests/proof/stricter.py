"""Refusals of ours that RLinf does not share, and why each is meant.

All else that the settings refuse in RLinf's block, RLinf refuses; `test_settings_against_rlinf.py` sees to it.
"""

from __future__ import annotations

import re

from config.faults import Fault
from tests.proof.drafts import Settings, counts, groups_of

STRICTER: tuple[tuple[str, str, str], ...] = (
    # Pattern of the key, pattern of the rule, reason.
    (
        r"placement\..*",
        r"process ranks are continuous from 0",
        "RLinf's documentation says so; its code renumbers them",
    ),
    (r"placement\..*", r"each group is named once", "its resources would have two numbers each"),
    (
        r"placement\..*",
        r"must match \^\[0-9",
        "RLinf reads ranks with int(), and takes +1, 1_0 and digits of all scripts",
    ),
    (r"placement\..*", r"must match \^ \*\[A-Za-z_\]", "a component's name is a key of RLinf's config"),
    (r"placement\[.*", r"must be a text|valid string", "a component's name is a text"),
    (r".*group(\[\d+\])?", r"must match \^\[A-Za-z0-9\]", "a label with a comma or a space at its ends can't be named"),
    (r".*group", r"a host is in a group once", "once is enough"),
    (r".*group", r"the host is in several groups", "a robot stands under a host, and RLinf finds it in one group"),
    (r".*group", r"at least 1 entry", "a host is in a group"),
    (r".*\.rank", r"", "ranks are this program's own to give out"),
    (r"cluster\.cloud", r"at least one cloud node takes part", "the head is a cloud node"),
    (
        r".*_type|.*arm_variant",
        r"must be one of|Input should be",
        "RLinf looks at a robot's type of camera only when it is there",
    ),
    (
        r".*_serials(\[\d+\])?",
        r"must be a|Input should be",
        "RLinf takes a text for a list of its characters, and compares texts",
    ),
    (r".*(ignore_hardware|disable_validate|enable_gripper)", r"", "RLinf takes whatever Python takes for true"),
    (r".*_port", r"", "a port is a number from 1 to 65535; RLinf does not look"),
    (
        r".*(robot_ip|can_interface|robot_url|gripper_connection)",
        r"must match|valid string|must be a text",
        "a text, of one line",
    ),
    (
        r".*controller_host",
        r"must be the name of a node",
        "RLinf looks for the controller's node only when training starts",
    ),
    (
        r".*hardware\[\d+\]",
        r"a robot stands once",
        "RLinf means to refuse this, too, and does not see it where there are lists",
    ),
    (r".*hardware\[\d+\]\.node_rank", r"", "a robot's rank is that of its host"),
    (r".*\.env\..*", r"RLinf makes a", "a robot that the settings do not name would be there"),
    (r".*\.env\..*|.*env_vars\..*", r"sets this variable itself", "what this program sets is its own"),
    (
        r".*env_vars.*",
        r"must match|valid string|must be a text",
        "a variable's name is one to every shell, and its value one line",
    ),
    (r".*env_configs\[\d+\]\.hosts", r"at least 1 entry", "no hosts, no environment"),
    (r".*env_configs\[\d+\]\.hosts", r"a host has one environment", "even in one entry, a host stands once"),
    (
        r".*python_interpreter_path",
        r"must match|valid string|must be a text",
        "a path from the root, since workers start anywhere",
    ),
    (r".*", r"must not hold `\$\{`", "a reference into a config that these settings do not hold; it may be never read"),
    (r".*options\.(num_nodes|node_groups|component_placement)", r"", "this program renders these"),
)


def why_stricter(fault: Fault, settings: Settings) -> str | None:
    """Why the settings refuse what RLinf takes; None where that is not meant."""
    if is_about_hosts_out(fault, settings):
        return "hosts that are out are checked as well, since they may come back"
    for key, rule, reason in STRICTER:
        if re.fullmatch(f"(cluster\\.)?(rlinf\\.component_)?{key}", fault.key) and re.search(rule, fault.rule):
            return reason
    return None


def is_about_hosts_out(fault: Fault, settings: Settings) -> bool:
    """Whether a fault is one of a host that does not count, or of a group that has no other."""
    host = re.match(r"cluster\.(cloud|edges)\[(\d+)\]", fault.key)
    if host:
        return not counts(settings[host[1]][int(host[2])])
    group = re.match(r"cluster\.rlinf\.node_groups\.(.*)\.env_configs\[", fault.key)
    hosts = [{"group": "cloud", **each} for each in settings["cloud"]]
    hosts += [{"group": "edge", **each} for each in settings["edges"]]
    return bool(group) and not any(counts(each) and group[1] in groups_of(each) for each in hosts)
