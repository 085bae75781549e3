"""`aws:ec2/instance:Instance`."""

from __future__ import annotations

import base64
from typing import ClassVar, cast

from lab.plugin_kit.operation import FailedError

from .aws import Json, wait_until
from .resource import Call, Plain, Resource, tag_list, tag_specifications, tags_of, whole
from .shapes import ARN, REGION, TAGS, Block, ListOf, MapOf, Property, Shape

_ROOT = Block(
    "aws:ec2/InstanceRootBlockDevice:InstanceRootBlockDevice",
    (
        Property("deleteOnTermination", "boolean", computed=True),
        Property("deviceName", computed=True),
        Property("encrypted", "boolean", replaces=True, computed=True),
        Property("iops", "number", computed=True),
        Property("kmsKeyId", replaces=True, computed=True),
        Property("tags", MapOf()),
        Property("tagsAll", MapOf(), computed=True),
        Property("throughput", "number", computed=True),
        Property("volumeId", computed=True),
        Property("volumeSize", "number", computed=True),
        Property("volumeType", computed=True),
    ),
)
_METADATA = Block(
    "aws:ec2/InstanceMetadataOptions:InstanceMetadataOptions",
    (
        Property("httpEndpoint", computed=True),
        Property("httpProtocolIpv6", computed=True),
        Property("httpPutResponseHopLimit", "number", computed=True),
        Property("httpTokens", computed=True),
        Property("instanceMetadataTags", computed=True),
    ),
)
_SPOT = Block(
    "aws:ec2/InstanceInstanceMarketOptionsSpotOptions:InstanceInstanceMarketOptionsSpotOptions",
    tuple(
        Property(name, replaces=True, computed=True)
        for name in ("instanceInterruptionBehavior", "maxPrice", "spotInstanceType", "validUntil")
    ),
)
_MARKET = Block(
    "aws:ec2/InstanceInstanceMarketOptions:InstanceInstanceMarketOptions",
    (
        Property("marketType", replaces=True, computed=True),
        Property("spotOptions", _SPOT, replaces=True, computed=True),
    ),
)
_TARGET = Block(
    "aws:ec2/InstanceCapacityReservationSpecificationCapacityReservationTarget:"
    "InstanceCapacityReservationSpecificationCapacityReservationTarget",
    (Property("capacityReservationId"), Property("capacityReservationResourceGroupArn")),
)
_RESERVATION = Block(
    "aws:ec2/InstanceCapacityReservationSpecification:InstanceCapacityReservationSpecification",
    (Property("capacityReservationPreference"), Property("capacityReservationTarget", _TARGET)),
)
_GONE = {"terminated", "shutting-down"}


class Instance(Resource):
    """A virtual machine. Its user data is kept as the program gives it, and not read back."""

    title = "EC2 Instance"
    shape: ClassVar = Shape(
        "aws:ec2/instance:Instance",
        (
            Property("ami", replaces=True, computed=True),
            Property("instanceType", computed=True),
            Property("keyName", replaces=True, computed=True),
            Property("subnetId", replaces=True, computed=True),
            Property("vpcSecurityGroupIds", ListOf("string"), computed=True),
            Property("userData"),
            Property("userDataBase64"),
            Property("userDataReplaceOnChange", "boolean"),
            Property("rootBlockDevice", _ROOT, computed=True),
            Property("metadataOptions", _METADATA, computed=True),
            Property("monitoring", "boolean", computed=True),
            Property("instanceMarketOptions", _MARKET, replaces=True, computed=True),
            Property("capacityReservationSpecification", _RESERVATION, computed=True),
            Property("placementGroup", replaces=True, computed=True),
            Property("availabilityZone", replaces=True, computed=True),
            Property("iamInstanceProfile", computed=True),
            Property("associatePublicIpAddress", "boolean", replaces=True, computed=True),
            Property("privateIp", replaces=True, computed=True),
            Property("sourceDestCheck", "boolean"),
            Property("disableApiTermination", "boolean", computed=True),
            Property("instanceInitiatedShutdownBehavior", computed=True),
            Property("volumeTags", MapOf()),
            *TAGS,
            REGION,
            ARN,
            Property("instanceState", output=True),
            Property("primaryNetworkInterfaceId", output=True),
            Property("privateDns", output=True),
            Property("publicDns", output=True, volatile=True),
            Property("publicIp", output=True, volatile=True),
            Property("instanceLifecycle", output=True),
            Property("securityGroups", ListOf("string"), output=True),
        ),
    )

    async def create(self, call: Call, inputs: Plain) -> str:
        """Runs it and waits until it runs."""
        for name in ("ami", "instanceType"):
            if not inputs.get(name):
                snake = {"ami": "ami", "instanceType": "instance_type"}[name]
                raise FailedError(f'"{snake}": one of `{snake},launch_template` must be specified')
        answer = await call.ec2("RunInstances", **await _run_parameters(call, inputs))
        identifier = call.exists(str(answer["Instances"][0]["InstanceId"]))
        await _wait(call, identifier, {"running"}, "create")
        if inputs.get("sourceDestCheck") is False:
            await call.ec2("ModifyInstanceAttribute", InstanceId=identifier, SourceDestCheck={"Value": False})
        if inputs.get("disableApiTermination"):
            await call.ec2("ModifyInstanceAttribute", InstanceId=identifier, DisableApiTermination={"Value": True})
        return identifier

    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """What is in the account; a terminated instance is gone."""
        found = await _described(call, identifier)
        if found is None or found["State"]["Name"] in _GONE:
            return None
        interfaces: list[Json] = found.get("NetworkInterfaces") or [{}]
        interface = interfaces[0]
        root = await _root_volume(call, found)
        groups = interface.get("Groups") or found.get("SecurityGroups", [])
        metadata = found.get("MetadataOptions", {})
        kept = (
            "userData", "userDataBase64", "userDataReplaceOnChange", "instanceMarketOptions", "volumeTags",
            "capacityReservationSpecification", "placementGroup", "disableApiTermination", "privateIp",
            "iamInstanceProfile", "instanceInitiatedShutdownBehavior",
        )  # fmt: skip
        return {
            **{name: state.get(name) for name in kept},
            "ami": found["ImageId"],
            "instanceType": found["InstanceType"],
            "keyName": found.get("KeyName"),
            "subnetId": found.get("SubnetId") or interface.get("SubnetId"),
            "vpcSecurityGroupIds": sorted(each["GroupId"] for each in groups),
            "securityGroups": sorted(each["GroupName"] for each in groups),
            "rootBlockDevice": _root_state(root, state.get("rootBlockDevice") or {}) if root else None,
            "metadataOptions": {
                "httpEndpoint": metadata.get("HttpEndpoint"),
                "httpProtocolIpv6": metadata.get("HttpProtocolIpv6"),
                "httpPutResponseHopLimit": metadata.get("HttpPutResponseHopLimit"),
                "httpTokens": metadata.get("HttpTokens"),
                "instanceMetadataTags": metadata.get("InstanceMetadataTags"),
            },
            "monitoring": found.get("Monitoring", {}).get("State") == "enabled",
            "placementGroup": state.get("placementGroup") or found.get("Placement", {}).get("GroupName") or "",
            "availabilityZone": found.get("Placement", {}).get("AvailabilityZone"),
            "associatePublicIpAddress": state.get("associatePublicIpAddress", bool(found.get("PublicIpAddress"))),
            "privateIp": found.get("PrivateIpAddress"),
            "privateDns": found.get("PrivateDnsName") or "",
            "publicIp": found.get("PublicIpAddress") or "",
            "publicDns": found.get("PublicDnsName") or "",
            "sourceDestCheck": found.get("SourceDestCheck", True),
            "instanceState": found["State"]["Name"],
            "instanceLifecycle": found.get("InstanceLifecycle") or "",
            "primaryNetworkInterfaceId": interface.get("NetworkInterfaceId") or "",
            "arn": await call.arn("instance", identifier, interface.get("OwnerId")),
            **tags_of(found),
        }

    async def update(self, call: Call, identifier: str, old: Plain, new: Plain) -> None:
        """Changes it in place; type and user data take a stop and a start."""

        def changed(name: str) -> bool:
            return name in new and old.get(name) != new[name]

        await call.tag(identifier, old, new)
        if changed("vpcSecurityGroupIds"):
            await call.ec2(
                "ModifyNetworkInterfaceAttribute",
                NetworkInterfaceId=old["primaryNetworkInterfaceId"],
                Groups=new["vpcSecurityGroupIds"],
            )
        if changed("sourceDestCheck"):
            await call.ec2(
                "ModifyInstanceAttribute", InstanceId=identifier, SourceDestCheck={"Value": new["sourceDestCheck"]}
            )
        if changed("disableApiTermination"):
            value = {"Value": new["disableApiTermination"]}
            await call.ec2("ModifyInstanceAttribute", InstanceId=identifier, DisableApiTermination=value)
        if changed("metadataOptions"):
            options = new["metadataOptions"]
            await call.ec2("ModifyInstanceMetadataOptions", InstanceId=identifier, **_metadata(options))
        if changed("monitoring"):
            await call.ec2("MonitorInstances" if new["monitoring"] else "UnmonitorInstances", InstanceIds=[identifier])
        if changed("rootBlockDevice"):
            await _update_root(call, old.get("rootBlockDevice") or {}, new["rootBlockDevice"] or {})
        user_data = any(old.get(name) != new.get(name) for name in ("userData", "userDataBase64"))
        if changed("instanceType") or user_data:
            await _stopped_for(call, identifier, new, type_changed=changed("instanceType"), user_data=user_data)

    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Terminates it and waits until it is."""
        if state.get("disableApiTermination"):
            await call.gone("ModifyInstanceAttribute", InstanceId=identifier, DisableApiTermination={"Value": False})
        await call.gone("TerminateInstances", InstanceIds=[identifier])
        await _wait(call, identifier, {"terminated", "gone"}, "terminated")


async def _run_parameters(call: Call, inputs: Plain) -> Plain:
    interface: Plain | None = None
    groups, subnet, private_ip = inputs.get("vpcSecurityGroupIds"), inputs.get("subnetId"), inputs.get("privateIp")
    if inputs.get("associatePublicIpAddress") is not None:
        interface = {
            "DeviceIndex": 0,
            "AssociatePublicIpAddress": inputs["associatePublicIpAddress"],
            "DeleteOnTermination": True,
        }
        interface |= {"SubnetId": subnet} if subnet else {}
        interface |= {"Groups": groups} if groups else {}
        interface |= {"PrivateIpAddress": private_ip} if private_ip else {}
        groups = subnet = private_ip = None
    placement: Plain = {}
    if inputs.get("availabilityZone"):
        placement["AvailabilityZone"] = inputs["availabilityZone"]
    if inputs.get("placementGroup"):
        placement["GroupName"] = inputs["placementGroup"]
    root: Plain | None = inputs.get("rootBlockDevice")
    volume_tags: Plain | None = inputs.get("volumeTags") or (root or {}).get("tags")
    specifications = [
        *(tag_specifications("instance", inputs.get("tags")) or []),
        *(tag_specifications("volume", volume_tags) or []),
    ]
    profile = inputs.get("iamInstanceProfile")
    return {
        "ImageId": inputs["ami"],
        "InstanceType": inputs["instanceType"],
        "MinCount": 1,
        "MaxCount": 1,
        "KeyName": inputs.get("keyName"),
        "SubnetId": subnet,
        "SecurityGroupIds": groups,
        "PrivateIpAddress": private_ip,
        "NetworkInterfaces": [interface] if interface else None,
        "UserData": _user_data(inputs),
        "BlockDeviceMappings": await _root_mapping(call, inputs["ami"], root) if root else None,
        "MetadataOptions": _metadata(inputs["metadataOptions"]) if inputs.get("metadataOptions") else None,
        "Monitoring": {"Enabled": True} if inputs.get("monitoring") else None,
        "InstanceMarketOptions": _market(inputs.get("instanceMarketOptions")),
        "CapacityReservationSpecification": _capitalized(inputs.get("capacityReservationSpecification")),
        "Placement": placement or None,
        "IamInstanceProfile": {"Name": profile} if profile else None,
        "InstanceInitiatedShutdownBehavior": inputs.get("instanceInitiatedShutdownBehavior"),
        "TagSpecifications": specifications or None,
    }


def _user_data(inputs: Plain) -> str | None:
    """User data as `RunInstances` of botocore takes it, which encodes it itself."""
    if inputs.get("userDataBase64") is not None:
        try:
            return base64.b64decode(inputs["userDataBase64"], validate=True).decode()
        except ValueError as error:
            raise FailedError(f'"user_data_base64" must be base64-encoded: {error}') from None
    return inputs.get("userData")


async def _root_mapping(call: Call, ami: str, root: Plain) -> list[Plain]:
    # An image that is not there is a fault that RunInstances names better.
    image = await call.found("DescribeImages", "Images", ImageIds=[ami]) or {}
    device = str(image.get("RootDeviceName") or "/dev/sda1")
    mappings = {each.get("DeviceName"): each.get("Ebs", {}) for each in image.get("BlockDeviceMappings", [])}
    smallest = mappings.get(device, {}).get("VolumeSize") or 8
    size = whole(root.get("volumeSize")) or smallest
    ebs: Plain = {
        "VolumeSize": size,
        "VolumeType": root.get("volumeType") or "gp3",
        "Encrypted": root.get("encrypted"),
        "Iops": whole(root.get("iops")),
        "Throughput": whole(root.get("throughput")),
        "KmsKeyId": root.get("kmsKeyId"),
        "DeleteOnTermination": root.get("deleteOnTermination") is not False,
    }
    return [{"DeviceName": device, "Ebs": {name: value for name, value in ebs.items() if value is not None}}]


def _metadata(options: Plain) -> Plain:
    given = {
        "HttpTokens": options.get("httpTokens"),
        "HttpEndpoint": options.get("httpEndpoint"),
        "HttpPutResponseHopLimit": whole(options.get("httpPutResponseHopLimit")),
        "HttpProtocolIpv6": options.get("httpProtocolIpv6"),
        "InstanceMetadataTags": options.get("instanceMetadataTags"),
    }
    return {name: value for name, value in given.items() if value is not None}


def _market(options: Plain | None) -> Plain | None:
    if not options:
        return None
    return _capitalized(options)


def _capitalized(value: Plain | None) -> Plain | None:
    """A block as AWS spells it: first letters upper-case."""
    if not value:
        return None
    return {
        f"{key[0].upper()}{key[1:]}": _capitalized(cast("Plain", each)) if isinstance(each, dict) else each
        for key, each in value.items()
        if each is not None
    }


async def _described(call: Call, identifier: str) -> Json | None:
    reservation = await call.found("DescribeInstances", "Reservations", InstanceIds=[identifier])
    return next(iter(reservation["Instances"]), None) if reservation else None


async def _wait(call: Call, identifier: str, wanted: set[str], what: str) -> None:
    async def probe() -> bool | None:
        found = await _described(call, identifier)
        state = found["State"]["Name"] if found else "gone"
        if state in _GONE and not wanted & _GONE:
            reason = (found or {}).get("StateReason", {}).get("Message")
            raise FailedError(
                f"waiting for EC2 Instance ({identifier}) {what}: unexpected state '{state}', wanted target "
                f"'{', '.join(sorted(wanted))}'" + (f". last error: {reason}" if reason else "")
            )
        return True if state in wanted else None

    await wait_until(call.operation, probe, f"waiting for EC2 Instance ({identifier}) {what}")


async def _stopped_for(call: Call, identifier: str, new: Plain, *, type_changed: bool, user_data: bool) -> None:
    found = await _described(call, identifier)
    was_running = found is not None and found["State"]["Name"] in {"running", "pending"}
    if was_running:
        await call.ec2("StopInstances", InstanceIds=[identifier])
        await _wait(call, identifier, {"stopped"}, "stop")
    if type_changed:
        await call.ec2("ModifyInstanceAttribute", InstanceId=identifier, InstanceType={"Value": new["instanceType"]})
    if user_data:
        value = (_user_data(new) or "").encode()
        await call.ec2("ModifyInstanceAttribute", InstanceId=identifier, UserData={"Value": value})
    if was_running:
        await call.ec2("StartInstances", InstanceIds=[identifier])
        await _wait(call, identifier, {"running"}, "start")


async def _root_volume(call: Call, found: Json) -> Json | None:
    for mapping in found.get("BlockDeviceMappings", []):
        if mapping["DeviceName"] == found.get("RootDeviceName") or len(found["BlockDeviceMappings"]) == 1:
            volume = await call.found("DescribeVolumes", "Volumes", VolumeIds=[mapping["Ebs"]["VolumeId"]])
            if volume is not None:
                kept = mapping["Ebs"].get("DeleteOnTermination", True)
                return {**volume, "DeviceName": mapping["DeviceName"], "DeleteOnTermination": kept}
    return None


def _root_state(volume: Json, known: Plain) -> Plain:
    return {
        "deleteOnTermination": volume["DeleteOnTermination"],
        "deviceName": volume["DeviceName"],
        "encrypted": volume.get("Encrypted", False),
        "iops": volume.get("Iops") or known.get("iops") or 0,
        "kmsKeyId": volume.get("KmsKeyId") or "",
        "throughput": volume.get("Throughput") or known.get("throughput") or 0,
        "volumeId": volume["VolumeId"],
        "volumeSize": volume["Size"],
        "volumeType": volume.get("VolumeType"),
        **tags_of(volume),
    }


async def _update_root(call: Call, old: Plain, new: Plain) -> None:
    volume = old.get("volumeId")
    names = {"volumeSize": "Size", "volumeType": "VolumeType", "iops": "Iops", "throughput": "Throughput"}
    change = {
        names[name]: new[name] if name == "volumeType" else whole(new[name])
        for name in names
        if new.get(name) is not None and new[name] != old.get(name)
    }
    if change and volume:
        await call.ec2("ModifyVolume", VolumeId=volume, **change)
    if volume and (tags := new.get("tags")) and tags != old.get("tags"):
        await call.ec2("CreateTags", Resources=[volume], Tags=tag_list(tags))
