"""Key pairs and elastic addresses."""

from __future__ import annotations

from typing import ClassVar

from .resource import Call, Plain, Resource, tag_specifications, tags_of
from .shapes import ARN, REGION, TAGS, Property, Shape


class KeyPair(Resource):
    """A public key that new instances let in."""

    title = "EC2 Key Pair"
    shape: ClassVar = Shape(
        "aws:ec2/keyPair:KeyPair",
        (
            Property("keyName", replaces=True, computed=True),
            Property("publicKey", required=True, replaces=True),
            *TAGS,
            REGION,
            ARN,
            Property("fingerprint", output=True),
            Property("keyPairId", output=True),
            Property("keyType", output=True),
        ),
        autoname="keyName",
    )

    async def create(self, call: Call, inputs: Plain) -> str:
        """Imports the key; its name is the resource's id."""
        answer = await call.ec2(
            "ImportKeyPair",
            KeyName=inputs["keyName"],
            PublicKeyMaterial=inputs["publicKey"].encode(),
            TagSpecifications=tag_specifications("key-pair", inputs.get("tags")),
        )
        return str(answer["KeyName"])

    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """The key; AWS does not give its public part back."""
        found = await call.found("DescribeKeyPairs", "KeyPairs", KeyNames=[identifier])
        if found is None:
            return None
        return {
            "keyName": found["KeyName"],
            "publicKey": state.get("publicKey"),
            "fingerprint": found.get("KeyFingerprint") or "",
            "keyPairId": found.get("KeyPairId") or "",
            "keyType": found.get("KeyType") or "ed25519",
            "arn": await call.arn("key-pair", identifier),
            **tags_of(found),
        }

    async def update(self, call: Call, identifier: str, old: Plain, new: Plain) -> None:
        """Its tags."""
        await call.tag(str(old.get("keyPairId") or identifier), old, new)

    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Deletes it."""
        await call.gone("DeleteKeyPair", KeyName=identifier)


class Eip(Resource):
    """An elastic address."""

    title = "EC2 EIP"
    shape: ClassVar = Shape(
        "aws:ec2/eip:Eip",
        (
            Property("domain", replaces=True, computed=True),
            Property("instance", computed=True),
            Property("networkInterface", computed=True),
            *TAGS,
            REGION,
            ARN,
            Property("allocationId", output=True),
            Property("associationId", output=True),
            Property("privateIp", output=True),
            Property("publicDns", output=True),
            Property("publicIp", output=True),
            Property("publicIpv4Pool", output=True),
        ),
    )

    async def create(self, call: Call, inputs: Plain) -> str:
        """Allocates it, and associates it where the program says with what."""
        answer = await call.ec2(
            "AllocateAddress",
            Domain=inputs.get("domain") or "vpc",
            TagSpecifications=tag_specifications("elastic-ip", inputs.get("tags")),
        )
        identifier = call.exists(str(answer["AllocationId"]))
        await _associate(call, identifier, inputs)
        return identifier

    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """The address and what has it."""
        found = await call.found("DescribeAddresses", "Addresses", AllocationIds=[identifier])
        if found is None:
            return None
        public = found["PublicIp"]
        region = call.region or call.aws.config.region
        return {
            "domain": found.get("Domain"),
            "instance": found.get("InstanceId") or "",
            "networkInterface": found.get("NetworkInterfaceId") or "",
            "allocationId": identifier,
            "associationId": found.get("AssociationId") or "",
            "privateIp": found.get("PrivateIpAddress") or "",
            "publicIp": public,
            "publicDns": f"ec2-{public.replace('.', '-')}.{region}.compute.amazonaws.com",
            "publicIpv4Pool": found.get("PublicIpv4Pool") or "amazon",
            "arn": await call.arn("elastic-ip", identifier),
            **tags_of(found),
        }

    async def update(self, call: Call, identifier: str, old: Plain, new: Plain) -> None:
        """Tags, and what has it."""
        await call.tag(identifier, old, new)
        if any(name in new and old.get(name) != new[name] for name in ("instance", "networkInterface")):
            if old.get("associationId"):
                await call.gone("DisassociateAddress", AssociationId=old["associationId"])
            await _associate(call, identifier, new)

    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Takes it from what has it, and gives it back."""
        found = await call.found("DescribeAddresses", "Addresses", AllocationIds=[identifier])
        if found is None:
            return
        if found.get("AssociationId"):
            await call.gone("DisassociateAddress", AssociationId=found["AssociationId"])
        await call.gone("ReleaseAddress", AllocationId=identifier)


class EipAssociation(Resource):
    """Which instance has an elastic address."""

    title = "EC2 EIP Association"
    shape: ClassVar = Shape(
        "aws:ec2/eipAssociation:EipAssociation",
        (
            *(
                Property(name, replaces=True, computed=True)
                for name in ("allocationId", "instanceId", "networkInterfaceId", "privateIpAddress", "publicIp")
            ),
            Property("allowReassociation", "boolean", replaces=True),
            REGION,
        ),
    )

    async def create(self, call: Call, inputs: Plain) -> str:
        """Associates it."""
        answer = await call.ec2(
            "AssociateAddress",
            AllocationId=inputs.get("allocationId"),
            InstanceId=inputs.get("instanceId"),
            NetworkInterfaceId=inputs.get("networkInterfaceId"),
            PrivateIpAddress=inputs.get("privateIpAddress"),
            PublicIp=None if inputs.get("allocationId") else inputs.get("publicIp"),
            AllowReassociation=inputs.get("allowReassociation"),
        )
        return str(answer["AssociationId"])

    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """The association, gone as soon as the address is with something else."""
        filters = [{"Name": "association-id", "Values": [identifier]}]
        found = await call.found("DescribeAddresses", "Addresses", Filters=filters)
        if found is None:
            return None
        return {
            "allocationId": found["AllocationId"],
            "instanceId": found.get("InstanceId") or "",
            "networkInterfaceId": found.get("NetworkInterfaceId") or "",
            "privateIpAddress": found.get("PrivateIpAddress") or "",
            "publicIp": found["PublicIp"],
            "allowReassociation": state.get("allowReassociation"),
        }

    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Takes the address away from the instance."""
        await call.gone("DisassociateAddress", AssociationId=identifier)


async def _associate(call: Call, allocation: str, inputs: Plain) -> None:
    if inputs.get("instance") or inputs.get("networkInterface"):
        await call.ec2(
            "AssociateAddress",
            AllocationId=allocation,
            InstanceId=inputs.get("instance"),
            NetworkInterfaceId=None if inputs.get("instance") else inputs.get("networkInterface"),
            AllowReassociation=True,
        )
