"""How many vCPUs the account may run, by kind of instance, as Service Quotas tells it and EC2 enforces it.

moto knows no quota of instances. A request for another value is granted at once here, a lower one, too: that is how a
test or a person at the lab sets one (`aws service-quotas request-service-quota-increase`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lab.aws_world.backend import ACCOUNT, REGION, backend

_STANDARD = frozenset({"a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"})
_GRAPHICS = frozenset({"g", "gr", "vt"})
_GENEROUS = 5_000
"""vCPUs that a fresh account may run of each kind: no test needs more, unless it says so."""
_LIVE = {"pending", "running"}


@dataclass
class Quota:
    """One quota of EC2: the vCPUs of the instances of these families that run at the same time."""

    code: str
    name: str
    families: frozenset[str]
    spot: bool
    value: int = _GENEROUS

    def told(self) -> dict[str, Any]:
        """As Service Quotas describes it."""
        return {
            "ServiceCode": "ec2",
            "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)",
            "QuotaArn": f"arn:aws:servicequotas:{REGION}:{ACCOUNT}:ec2/{self.code}",
            "QuotaCode": self.code,
            "QuotaName": self.name,
            "Value": float(self.value),
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }


_STANDARD_NAME = "Standard (A, C, D, H, I, M, R, T, Z)"
QUOTAS = (
    Quota("L-1216C47A", f"Running On-Demand {_STANDARD_NAME} instances", _STANDARD, spot=False),
    Quota("L-DB2E81BA", "Running On-Demand G and VT instances", _GRAPHICS, spot=False),
    Quota("L-417A185B", "Running On-Demand P instances", frozenset({"p"}), spot=False),
    Quota("L-34B43A08", f"All {_STANDARD_NAME} Spot Instance Requests", _STANDARD, spot=True),
    Quota("L-3819A6DF", "All G and VT Spot Instance Requests", _GRAPHICS, spot=True),
)


def enforce() -> None:
    """Has moto know these quotas, and refuse instances beyond them when they are run and when they are started."""
    from moto.ec2.models import instances  # noqa: PLC0415  # after the account's settings are made
    from moto.servicequotas.models import ServiceQuotasBackend  # noqa: PLC0415  # the same
    from moto.servicequotas.responses import ServiceQuotasResponse  # noqa: PLC0415  # the same

    run, start = instances.InstanceBackend.run_instances, instances.InstanceBackend.start_instances
    get = ServiceQuotasBackend.get_service_quota

    def run_instances(self: Any, image_id: str, count: int, *rest: Any, **given: Any) -> Any:  # noqa: ANN401  # as it is in moto
        spot = given.get("instance_market_options") == "spot"
        _allow([(str(given.get("instance_type")), spot)] * count)
        return run(self, image_id, count, *rest, **given)

    def start_instances(self: Any, instance_ids: list[str]) -> Any:  # noqa: ANN401  # as it is in moto
        stopped = [each for each in self.get_multi_instances_by_id(instance_ids) if each.state not in _LIVE]
        _allow([(each.instance_type, each.lifecycle == "spot") for each in stopped])
        return start(self, instance_ids)

    def get_service_quota(self: Any, service_code: str, quota_code: str) -> dict[str, Any]:  # noqa: ANN401  # as it is in moto
        found = _coded(quota_code) if service_code == "ec2" else None
        return found.told() if found is not None else get(self, service_code, quota_code)

    def request_service_quota_increase(self: Any) -> str:  # noqa: ANN401  # as it is in moto
        asked = json.loads(self.body)
        found = _coded(str(asked.get("QuotaCode"))) if asked.get("ServiceCode") == "ec2" else None
        if found is None:
            get(self.backend, "none", "none")  # refuses it as moto refuses what it does not know
            raise AssertionError("moto knows a quota of no service")
        found.value = int(asked["DesiredValue"])
        told = {name: found.told()[name] for name in ("ServiceCode", "ServiceName", "QuotaCode", "QuotaName")}
        return json.dumps({"RequestedQuota": {**told, "DesiredValue": float(found.value), "Status": "APPROVED"}})

    instances.InstanceBackend.run_instances = run_instances
    instances.InstanceBackend.start_instances = start_instances
    ServiceQuotasBackend.get_service_quota = get_service_quota
    setattr(  # noqa: B010  # moto has no such method
        ServiceQuotasResponse, "request_service_quota_increase", request_service_quota_increase
    )


def _coded(code: str) -> Quota | None:
    return next((quota for quota in QUOTAS if quota.code == code), None)


def _quota_of(instance_type: str, *, spot: bool) -> Quota | None:
    family = re.match("[a-z]*", instance_type)
    name = family[0] if family is not None else ""
    return next((quota for quota in QUOTAS if name in quota.families and quota.spot is spot), None)


def _allow(wanted: Iterable[tuple[str, bool]]) -> None:
    """Refuses instances, each a type and whether it is spot, that do not fit beside those that run."""
    from moto.ec2.exceptions import EC2ClientError  # noqa: PLC0415  # after the account's settings are made

    live = [(each.instance_type, each.lifecycle == "spot") for each in backend().all_instances() if each.state in _LIVE]
    used: dict[str, int] = {}
    for instance_type, spot in live:
        if (quota := _quota_of(instance_type, spot=spot)) is not None:
            used[quota.code] = used.get(quota.code, 0) + _vcpus(instance_type)
    for instance_type, spot in wanted:
        quota = _quota_of(instance_type, spot=spot)
        if quota is None:
            continue
        used[quota.code] = used.get(quota.code, 0) + _vcpus(instance_type)
        if used[quota.code] <= quota.value:
            continue
        if spot:
            raise EC2ClientError("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
        raise EC2ClientError(
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of {quota.value} allows for the "
            "instance bucket that the specified instance type belongs to. Please visit "
            "http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
        )


def _vcpus(instance_type: str) -> int:
    """Of a type; 0 of one that does not exist, which EC2 refuses for that reason."""
    from moto.ec2.models.instance_types import INSTANCE_TYPES  # noqa: PLC0415  # after the account's settings are made

    return int(INSTANCE_TYPES.get(instance_type, {}).get("VCpuInfo", {}).get("DefaultVCpus", 0))
