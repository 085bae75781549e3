"""VPCs: subnets, gateways, route tables."""

from __future__ import annotations

from typing import ClassVar

from .resource import Call, Plain, Resource, filters, tag_specifications, tags_of
from .shapes import ARN, REGION, TAGS, Property, Shape


class Vpc(Resource):
    """A network."""

    title = "EC2 VPC"
    shape: ClassVar = Shape(
        "aws:ec2/vpc:Vpc",
        (
            Property("cidrBlock", replaces=True, computed=True),
            Property("enableDnsHostnames", "boolean", computed=True),
            Property("enableDnsSupport", "boolean", default=True),
            Property("instanceTenancy", default="default"),
            *TAGS,
            REGION,
            ARN,
            Property("defaultNetworkAclId", output=True),
            Property("defaultRouteTableId", output=True),
            Property("defaultSecurityGroupId", output=True),
            Property("dhcpOptionsId", output=True),
            Property("mainRouteTableId", output=True),
            Property("ownerId", output=True),
        ),
    )

    async def create(self, call: Call, inputs: Plain) -> str:
        """Creates it."""
        answer = await call.ec2(
            "CreateVpc",
            CidrBlock=inputs.get("cidrBlock"),
            InstanceTenancy=inputs.get("instanceTenancy"),
            TagSpecifications=tag_specifications("vpc", inputs.get("tags")),
        )
        identifier = call.exists(str(answer["Vpc"]["VpcId"]))
        await self._attributes(call, identifier, {"enableDnsSupport": True}, inputs)
        return identifier

    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """The network and what AWS made with it."""
        found = await call.found("DescribeVpcs", "Vpcs", VpcIds=[identifier])
        if found is None:
            return None
        group = await call.found(
            "DescribeSecurityGroups", "SecurityGroups", Filters=filters(vpc_id=identifier, group_name="default")
        )
        table = await call.found(
            "DescribeRouteTables",
            "RouteTables",
            Filters=[*filters(vpc_id=identifier), {"Name": "association.main", "Values": ["true"]}],
        )
        acl = await call.found("DescribeNetworkAcls", "NetworkAcls", Filters=filters(vpc_id=identifier, default="true"))
        attributes = {
            name: await call.ec2("DescribeVpcAttribute", VpcId=identifier, Attribute=name)
            for name in ("enableDnsHostnames", "enableDnsSupport")
        }
        main = (table or {}).get("RouteTableId") or ""
        return {
            "cidrBlock": found["CidrBlock"],
            "instanceTenancy": found.get("InstanceTenancy") or "default",
            **{name: each[name[0].upper() + name[1:]]["Value"] for name, each in attributes.items()},
            "defaultNetworkAclId": (acl or {}).get("NetworkAclId") or "",
            "defaultRouteTableId": main,
            "defaultSecurityGroupId": (group or {}).get("GroupId") or "",
            "dhcpOptionsId": found.get("DhcpOptionsId") or "",
            "mainRouteTableId": main,
            "ownerId": found.get("OwnerId") or "",
            "arn": await call.arn("vpc", identifier, found.get("OwnerId")),
            **tags_of(found),
        }

    async def update(self, call: Call, identifier: str, old: Plain, new: Plain) -> None:
        """Tags and attributes."""
        await call.tag(identifier, old, new)
        await self._attributes(call, identifier, old, new)

    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Deletes it."""
        await call.gone("DeleteVpc", VpcId=identifier)

    @staticmethod
    async def _attributes(call: Call, identifier: str, old: Plain, new: Plain) -> None:
        for name, key in (("enableDnsSupport", "EnableDnsSupport"), ("enableDnsHostnames", "EnableDnsHostnames")):
            if new.get(name) is not None and old.get(name) != new[name]:
                await call.ec2("ModifyVpcAttribute", VpcId=identifier, **{key: {"Value": new[name]}})


class Subnet(Resource):
    """A part of a network in one availability zone."""

    title = "EC2 Subnet"
    shape: ClassVar = Shape(
        "aws:ec2/subnet:Subnet",
        (
            Property("vpcId", required=True, replaces=True),
            Property("cidrBlock", replaces=True),
            Property("availabilityZone", replaces=True, computed=True),
            Property("mapPublicIpOnLaunch", "boolean", default=False),
            *TAGS,
            REGION,
            ARN,
            Property("availabilityZoneId", output=True),
            Property("ownerId", output=True),
        ),
    )

    async def create(self, call: Call, inputs: Plain) -> str:
        """Creates it."""
        answer = await call.ec2(
            "CreateSubnet",
            VpcId=inputs["vpcId"],
            CidrBlock=inputs.get("cidrBlock"),
            AvailabilityZone=inputs.get("availabilityZone"),
            TagSpecifications=tag_specifications("subnet", inputs.get("tags")),
        )
        identifier = call.exists(str(answer["Subnet"]["SubnetId"]))
        await self._attributes(call, identifier, {"mapPublicIpOnLaunch": False}, inputs)
        return identifier

    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """The subnet."""
        found = await call.found("DescribeSubnets", "Subnets", SubnetIds=[identifier])
        if found is None:
            return None
        return {
            "vpcId": found["VpcId"],
            "cidrBlock": found["CidrBlock"],
            "availabilityZone": found["AvailabilityZone"],
            "availabilityZoneId": found.get("AvailabilityZoneId") or "",
            "mapPublicIpOnLaunch": found.get("MapPublicIpOnLaunch", False),
            "ownerId": found.get("OwnerId") or "",
            "arn": await call.arn("subnet", identifier, found.get("OwnerId")),
            **tags_of(found),
        }

    async def update(self, call: Call, identifier: str, old: Plain, new: Plain) -> None:
        """Tags, and whether its instances get public addresses."""
        await call.tag(identifier, old, new)
        await self._attributes(call, identifier, old, new)

    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Deletes it."""
        await call.gone("DeleteSubnet", SubnetId=identifier)

    @staticmethod
    async def _attributes(call: Call, identifier: str, old: Plain, new: Plain) -> None:
        value = new.get("mapPublicIpOnLaunch")
        if value is not None and old.get("mapPublicIpOnLaunch") != value:
            await call.ec2("ModifySubnetAttribute", SubnetId=identifier, MapPublicIpOnLaunch={"Value": value})


class InternetGateway(Resource):
    """The way from a network to the Internet."""

    title = "EC2 Internet Gateway"
    shape: ClassVar = Shape(
        "aws:ec2/internetGateway:InternetGateway",
        (Property("vpcId", computed=True), *TAGS, REGION, ARN, Property("ownerId", output=True)),
    )

    async def create(self, call: Call, inputs: Plain) -> str:
        """Creates it, and attaches it where the program says to what."""
        answer = await call.ec2(
            "CreateInternetGateway", TagSpecifications=tag_specifications("internet-gateway", inputs.get("tags"))
        )
        identifier = call.exists(str(answer["InternetGateway"]["InternetGatewayId"]))
        if inputs.get("vpcId"):
            await call.ec2("AttachInternetGateway", InternetGatewayId=identifier, VpcId=inputs["vpcId"])
        return identifier

    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """The gateway and its network."""
        found = await call.found("DescribeInternetGateways", "InternetGateways", InternetGatewayIds=[identifier])
        if found is None:
            return None
        return {
            "vpcId": next((each["VpcId"] for each in found.get("Attachments", [])), ""),
            "ownerId": found.get("OwnerId") or "",
            "arn": await call.arn("internet-gateway", identifier, found.get("OwnerId")),
            **tags_of(found),
        }

    async def update(self, call: Call, identifier: str, old: Plain, new: Plain) -> None:
        """Tags, and its network."""
        await call.tag(identifier, old, new)
        if "vpcId" in new and old.get("vpcId") != new["vpcId"]:
            if old.get("vpcId"):
                await call.gone("DetachInternetGateway", InternetGatewayId=identifier, VpcId=old["vpcId"])
            await call.ec2("AttachInternetGateway", InternetGatewayId=identifier, VpcId=new["vpcId"])

    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Detaches and deletes it."""
        found = await call.found("DescribeInternetGateways", "InternetGateways", InternetGatewayIds=[identifier])
        for each in (found or {}).get("Attachments", []):
            await call.gone("DetachInternetGateway", InternetGatewayId=identifier, VpcId=each["VpcId"])
        await call.gone("DeleteInternetGateway", InternetGatewayId=identifier)


class RouteTable(Resource):
    """A route table; its routes are resources of their own."""

    title = "EC2 Route Table"
    shape: ClassVar = Shape(
        "aws:ec2/routeTable:RouteTable",
        (Property("vpcId", required=True, replaces=True), *TAGS, REGION, ARN, Property("ownerId", output=True)),
    )

    async def create(self, call: Call, inputs: Plain) -> str:
        """Creates it."""
        answer = await call.ec2(
            "CreateRouteTable",
            VpcId=inputs["vpcId"],
            TagSpecifications=tag_specifications("route-table", inputs.get("tags")),
        )
        return str(answer["RouteTable"]["RouteTableId"])

    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """The table."""
        found = await call.found("DescribeRouteTables", "RouteTables", RouteTableIds=[identifier])
        if found is None:
            return None
        return {
            "vpcId": found["VpcId"],
            "ownerId": found.get("OwnerId") or "",
            "arn": await call.arn("route-table", identifier, found.get("OwnerId")),
            **tags_of(found),
        }

    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Deletes it."""
        await call.gone("DeleteRouteTable", RouteTableId=identifier)


class Route(Resource):
    """One route of a table."""

    title = "Route in Route Table"
    shape: ClassVar = Shape(
        "aws:ec2/route:Route",
        (
            Property("routeTableId", required=True, replaces=True),
            Property("destinationCidrBlock", required=True, replaces=True),
            Property("gatewayId"),
            Property("networkInterfaceId", computed=True),
            REGION,
            Property("origin", output=True),
            Property("state", output=True),
            Property("instanceId", output=True),
        ),
    )

    async def create(self, call: Call, inputs: Plain) -> str:
        """Creates it; it has no id at AWS."""
        await call.ec2("CreateRoute", **_route(inputs))
        return f"r-{inputs['routeTableId']}{inputs['destinationCidrBlock'].replace('/', '-')}"

    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """The route, found in its table."""
        table = await call.found("DescribeRouteTables", "RouteTables", RouteTableIds=[state["routeTableId"]])
        for each in (table or {}).get("Routes", []):
            if each.get("DestinationCidrBlock") == state["destinationCidrBlock"]:
                return {
                    "routeTableId": state["routeTableId"],
                    "destinationCidrBlock": state["destinationCidrBlock"],
                    "gatewayId": each.get("GatewayId") or "",
                    "networkInterfaceId": each.get("NetworkInterfaceId") or "",
                    "instanceId": each.get("InstanceId") or "",
                    "origin": each.get("Origin") or "CreateRoute",
                    "state": each.get("State") or "active",
                }
        return None

    async def update(self, call: Call, identifier: str, old: Plain, new: Plain) -> None:
        """Its target."""
        await call.ec2("ReplaceRoute", **_route(new))

    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Deletes it."""
        await call.gone(
            "DeleteRoute",
            RouteTableId=state["routeTableId"],
            DestinationCidrBlock=state["destinationCidrBlock"],
        )


class RouteTableAssociation(Resource):
    """Which subnet has a route table."""

    title = "Route Table Association"
    shape: ClassVar = Shape(
        "aws:ec2/routeTableAssociation:RouteTableAssociation",
        (
            # In place in the original; AWS gives the association a new id all the same.
            Property("routeTableId", required=True, replaces=True),
            Property("subnetId", replaces=True),
            Property("gatewayId", replaces=True),
            REGION,
        ),
    )

    async def create(self, call: Call, inputs: Plain) -> str:
        """Associates them."""
        answer = await call.ec2(
            "AssociateRouteTable",
            RouteTableId=inputs["routeTableId"],
            SubnetId=inputs.get("subnetId"),
            GatewayId=inputs.get("gatewayId"),
        )
        return str(answer["AssociationId"])

    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """The association."""
        given = [{"Name": "association.route-table-association-id", "Values": [identifier]}]
        if (found := await call.found("DescribeRouteTables", "RouteTables", Filters=given)) is None:
            return None
        for each in found.get("Associations", []):
            if each["RouteTableAssociationId"] == identifier:
                return {
                    "routeTableId": each["RouteTableId"],
                    "subnetId": each.get("SubnetId"),
                    "gatewayId": each.get("GatewayId"),
                }
        return None

    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Takes the table from the subnet."""
        await call.gone("DisassociateRouteTable", AssociationId=identifier)


def _route(inputs: Plain) -> Plain:
    return {
        "RouteTableId": inputs["routeTableId"],
        "DestinationCidrBlock": inputs["destinationCidrBlock"],
        "GatewayId": inputs.get("gatewayId"),
        "NetworkInterfaceId": inputs.get("networkInterfaceId"),
    }
