"""Functions: what a program looks up in the account."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from lab.plugin_kit.operation import FailedError

from .resource import Call, Plain, tags_of
from .shapes import REGION, Block, ListOf, MapOf, Property, Shape

_Run: TypeAlias = Callable[[Call, Plain], Awaitable[Plain]]


@dataclass(frozen=True)
class Function:
    """One function: its arguments and what it does."""

    arguments: Shape
    run: _Run


def _filter(name: str) -> Property:
    token = f"aws:ec2/{name}Filter:{name}Filter"
    return Property("filters", ListOf(Block(token, (Property("name"), Property("values", ListOf("string"))))))


async def get_parameter(call: Call, given: Plain) -> Plain:
    """A parameter of the Systems Manager."""
    name, decrypted = given["name"], given.get("withDecryption") is not False
    try:
        answer = await call.aws.call("ssm", "GetParameter", call.region, Name=name, WithDecryption=decrypted)
    except FailedError as error:
        raise error.within(f"reading SSM Parameter ({name}): ") from None
    found = answer["Parameter"]
    kind = found.get("Type", "String")
    return {
        "id": found["Name"],
        "name": found["Name"],
        "type": kind,
        "value": found["Value"],
        "insecureValue": None if kind == "SecureString" else found["Value"],
        "version": found.get("Version", 1),
        "arn": found.get("ARN") or "",
        "withDecryption": decrypted,
    }


async def get_ami(call: Call, given: Plain) -> Plain:
    """An image."""
    answer = await call.ec2(
        "DescribeImages",
        Owners=given.get("owners"),
        ExecutableUsers=given.get("executableUsers"),
        Filters=_filters(given),
    )
    found = [each for each in answer["Images"] if _name_fits(each, given.get("nameRegex"))]
    if not found:
        raise FailedError("Your query returned no results. Please change your search criteria and try again.")
    found.sort(key=lambda each: each.get("CreationDate", ""), reverse=True)
    if len(found) > 1 and not given.get("mostRecent"):
        raise FailedError(
            "Your query returned more than one result. Please try a more specific search criteria, or set "
            "`most_recent` attribute to true."
        )
    image = found[0]
    identifier = image["ImageId"]
    return {
        "id": identifier,
        "imageId": identifier,
        "architecture": image.get("Architecture") or "",
        "creationDate": image.get("CreationDate") or "",
        "description": image.get("Description") or "",
        "name": image.get("Name") or "",
        "ownerId": image.get("OwnerId") or "",
        "rootDeviceName": image.get("RootDeviceName") or "",
        "rootDeviceType": image.get("RootDeviceType") or "",
        "state": image.get("State") or "",
        "virtualizationType": image.get("VirtualizationType") or "",
        "platform": image.get("Platform") or "",
        "public": image.get("Public", False),
        "arn": f"arn:aws:ec2:{call.region or call.aws.config.region}::image/{identifier}",
        "blockDeviceMappings": [_mapping(each) for each in image.get("BlockDeviceMappings", [])],
        **_tags(image),
    }


async def get_vpc(call: Call, given: Plain) -> Plain:
    """A network."""
    found = await _one(
        call, "DescribeVpcs", "Vpcs", "VPC", VpcIds=_listed(given.get("id")),
        Filters=_filters(given, isDefault=given.get("default"), cidr=given.get("cidrBlock"), state=given.get("state")),
    )  # fmt: skip
    identifier = found["VpcId"]
    table = await call.found(
        "DescribeRouteTables",
        "RouteTables",
        Filters=[{"Name": "vpc-id", "Values": [identifier]}, {"Name": "association.main", "Values": ["true"]}],
    )
    return {
        "id": identifier,
        "cidrBlock": found["CidrBlock"],
        "default": found.get("IsDefault", False),
        "dhcpOptionsId": found.get("DhcpOptionsId") or "",
        "instanceTenancy": found.get("InstanceTenancy") or "default",
        "state": found.get("State") or "",
        "ownerId": found.get("OwnerId") or "",
        "mainRouteTableId": (table or {}).get("RouteTableId") or "",
        "arn": await call.arn("vpc", identifier, found.get("OwnerId")),
        **_tags(found),
    }


async def get_subnet(call: Call, given: Plain) -> Plain:
    """A subnet."""
    found = await _one(
        call, "DescribeSubnets", "Subnets", "Subnet", SubnetIds=_listed(given.get("id")),
        Filters=_filters(
            given, vpcId=given.get("vpcId"), cidrBlock=given.get("cidrBlock"), state=given.get("state"),
            availabilityZone=given.get("availabilityZone"), defaultForAz=given.get("defaultForAz"),
        ),
    )  # fmt: skip
    identifier = found["SubnetId"]
    return {
        "id": identifier,
        "vpcId": found["VpcId"],
        "cidrBlock": found["CidrBlock"],
        "availabilityZone": found["AvailabilityZone"],
        "availabilityZoneId": found.get("AvailabilityZoneId") or "",
        "availableIpAddressCount": found.get("AvailableIpAddressCount", 0),
        "defaultForAz": found.get("DefaultForAz", False),
        "mapPublicIpOnLaunch": found.get("MapPublicIpOnLaunch", False),
        "state": found.get("State") or "",
        "ownerId": found.get("OwnerId") or "",
        "arn": await call.arn("subnet", identifier, found.get("OwnerId")),
        **_tags(found),
    }


async def get_subnets(call: Call, given: Plain) -> Plain:
    """The ids of subnets."""
    answer = await call.ec2("DescribeSubnets", Filters=_filters(given))
    return {
        "id": call.region or call.aws.config.region,
        "ids": [each["SubnetId"] for each in answer["Subnets"]],
        "tags": given.get("tags") or {},
    }


async def get_instance_type(call: Call, given: Plain) -> Plain:
    """What an instance type has."""
    wanted = given["instanceType"]
    try:
        answer = await call.ec2("DescribeInstanceTypes", InstanceTypes=[wanted])
    except FailedError as error:
        raise error.within(f"reading EC2 Instance Type ({wanted}): ") from None
    found = next(iter(answer["InstanceTypes"]), None)
    if found is None:
        raise FailedError(f"no matching EC2 Instance Type ({wanted}) found")
    processor, network = found.get("ProcessorInfo", {}), found.get("NetworkInfo", {})
    gpus = found.get("GpuInfo", {}).get("Gpus", [])
    return {
        "id": wanted,
        "instanceType": wanted,
        "currentGeneration": found.get("CurrentGeneration", False),
        "freeTierEligible": found.get("FreeTierEligible", False),
        "bareMetal": found.get("BareMetal", False),
        "defaultVcpus": found.get("VCpuInfo", {}).get("DefaultVCpus", 0),
        "defaultCores": found.get("VCpuInfo", {}).get("DefaultCores", 0),
        "memorySize": found.get("MemoryInfo", {}).get("SizeInMiB", 0),
        "supportedArchitectures": processor.get("SupportedArchitectures", []),
        "supportedUsagesClasses": found.get("SupportedUsageClasses", []),
        "networkPerformance": network.get("NetworkPerformance") or "",
        "ebsOptimizedSupport": found.get("EbsInfo", {}).get("EbsOptimizedSupport") or "",
        "gpuses": [
            {
                "count": each.get("Count", 0),
                "manufacturer": each.get("Manufacturer") or "",
                "memorySize": each.get("MemoryInfo", {}).get("SizeInMiB", 0),
                "name": each.get("Name") or "",
            }
            for each in gpus
        ],
        "totalGpuMemory": found.get("GpuInfo", {}).get("TotalGpuMemoryInMiB", 0),
    }


async def get_caller_identity(call: Call, _given: Plain) -> Plain:
    """Whose credentials these are."""
    answer = await call.aws.call("sts", "GetCallerIdentity", call.region)
    return {
        "id": answer["Account"],
        "accountId": answer["Account"],
        "arn": answer["Arn"],
        "userId": answer["UserId"],
    }


async def get_availability_zones(call: Call, given: Plain) -> Plain:
    """The zones of a region."""
    answer = await call.ec2("DescribeAvailabilityZones", Filters=_filters(given, state=given.get("state")))
    zones = sorted(answer["AvailabilityZones"], key=lambda each: each["ZoneName"])
    excluded: set[str] = {*(given.get("excludeNames") or []), *(given.get("excludeZoneIds") or [])}
    zones = [each for each in zones if not {each["ZoneName"], each.get("ZoneId")} & excluded]
    return {
        "id": call.region or call.aws.config.region,
        "names": [each["ZoneName"] for each in zones],
        "zoneIds": [each.get("ZoneId") or "" for each in zones],
        "groupNames": sorted({each.get("GroupName") or each.get("RegionName") or "" for each in zones}),
    }


async def get_region(call: Call, given: Plain) -> Plain:
    """A region, the provider's where none is named."""
    name = given.get("region") or given.get("name") or call.aws.config.region
    answer = await call.ec2("DescribeRegions", RegionNames=[name])
    found = answer["Regions"][0]
    return {
        "id": name,
        "name": name,
        "region": name,
        "description": name,
        "endpoint": found.get("Endpoint") or "",
    }


async def _one(call: Call, operation: str, key: str, title: str, **parameters: object) -> Plain:
    answer = await call.ec2(operation, **parameters)
    found: list[Plain] = answer[key]
    if not found:
        raise FailedError(f"no matching EC2 {title} found")
    if len(found) > 1:
        raise FailedError(f"multiple EC2 {title}s matched; use additional constraints to reduce matches to a single "
                          f"EC2 {title}")  # fmt: skip
    return found[0]


def _listed(value: object) -> list[object] | None:
    return [value] if value else None


def _filters(given: Plain, **more: object) -> list[Plain] | None:
    """The program's own filters, its tags, and arguments that are filters by another name."""
    own: list[Plain] = given.get("filters") or []
    tags: Plain = given.get("tags") or {}
    result: list[Plain] = [{"Name": each["name"], "Values": each["values"]} for each in own]
    result += [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
    for name, value in more.items():
        if value not in {None, ""} and not (name in {"isDefault", "defaultForAz"} and value is False):
            text = str(value).lower() if isinstance(value, bool) else value
            result.append({"Name": _KEBAB.get(name, name), "Values": [text]})
    return result or None


_KEBAB = {
    "vpcId": "vpc-id",
    "cidrBlock": "cidr-block",
    "availabilityZone": "availability-zone",
    "defaultForAz": "default-for-az",
}


def _name_fits(image: Plain, pattern: str | None) -> bool:
    import re  # noqa: PLC0415  # seldom asked for

    return pattern is None or re.search(pattern, image.get("Name") or "") is not None


def _mapping(found: Plain) -> Plain:
    ebs = {f"{key[0].lower()}{key[1:]}": str(value) for key, value in found.get("Ebs", {}).items()}
    return {"deviceName": found.get("DeviceName") or "", "ebs": ebs, "noDevice": "", "virtualName": ""}


def _tags(found: Plain) -> Plain:
    return {"tags": tags_of(found)["tagsAll"]}


def _function(token: str, run: _Run, *arguments: Property) -> tuple[str, Function]:
    return token, Function(Shape(token, (*arguments, REGION)), run)


FUNCTIONS = dict(
    (
        _function(
            "aws:ssm/getParameter:getParameter", get_parameter,
            Property("name", required=True), Property("withDecryption", "boolean"),
        ),
        _function(
            "aws:ec2/getAmi:getAmi", get_ami,
            Property("owners", ListOf("string")), Property("mostRecent", "boolean"), Property("nameRegex"),
            Property("executableUsers", ListOf("string")), Property("includeDeprecated", "boolean"),
            Property("allowUnsafeFilter", "boolean"), _filter("getAmi"), Property("tags", MapOf()),
        ),
        _function(
            "aws:ec2/getVpc:getVpc", get_vpc,
            Property("id"), Property("default", "boolean"), Property("cidrBlock"), Property("state"),
            Property("dhcpOptionsId"), _filter("getVpc"), Property("tags", MapOf()),
        ),
        _function(
            "aws:ec2/getSubnet:getSubnet", get_subnet,
            Property("id"), Property("vpcId"), Property("cidrBlock"), Property("availabilityZone"),
            Property("defaultForAz", "boolean"), Property("state"), _filter("getSubnet"), Property("tags", MapOf()),
        ),
        _function("aws:ec2/getSubnets:getSubnets", get_subnets, _filter("getSubnets"), Property("tags", MapOf())),
        _function(
            "aws:ec2/getInstanceType:getInstanceType", get_instance_type, Property("instanceType", required=True)
        ),
        _function("aws:index/getCallerIdentity:getCallerIdentity", get_caller_identity),
        _function(
            "aws:index/getAvailabilityZones:getAvailabilityZones", get_availability_zones,
            Property("state"), Property("allAvailabilityZones", "boolean"), _filter("getAvailabilityZones"),
            Property("excludeNames", ListOf("string")), Property("excludeZoneIds", ListOf("string")),
        ),
        _function("aws:index/getRegion:getRegion", get_region, Property("name"), Property("endpoint")),
    )
)  # fmt: skip
