"""The rules as a policy pack of Pulumi's: `pulumi preview --policy-pack policy/pack`, `up` likewise.

Where a stack's ports differ, or open SSH is wanted, a file says so, as `--policy-pack-config FILE`:

    {"all": "mandatory", "no-open-ssh": {"sshFromAnywhere": true}, "no-other-port": {"sshPorts": [2222]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    PolicyPack,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
)

from policy.rules import RULES, Ports, Rule

_PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
_USUAL = Ports()


def _policy(rule: Rule) -> ResourceValidationPolicy:
    def validate(args: ResourceValidationArgs, report_violation: ReportViolation) -> None:
        for breach in rule.breaches(args.resource_type, args.props, _ports(args.get_config())):
            report_violation(f"{args.name} {breach}", None)

    schema = PolicyConfigSchema(
        {
            "easytierPort": {**_PORT, "default": _USUAL.easytier},
            "sshPorts": {"type": "array", "items": _PORT, "default": sorted(_USUAL.ssh)},
            "sshFromAnywhere": {"type": "boolean", "default": _USUAL.ssh_from_anywhere},
            "gcsPort": {**_PORT, "default": _USUAL.gcs},
        }
    )
    return ResourceValidationPolicy(rule.name, rule.description, validate, EnforcementLevel.MANDATORY, schema)


def _ports(config: Mapping[str, Any]) -> Ports:
    return Ports(
        easytier=int(config["easytierPort"]),
        ssh=frozenset(int(port) for port in config["sshPorts"]),
        ssh_from_anywhere=bool(config["sshFromAnywhere"]),
        gcs=int(config["gcsPort"]),
    )


PolicyPack("rlinf-cloud-edge", [_policy(rule) for rule in RULES])
