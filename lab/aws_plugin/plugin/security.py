"""Security groups and their rules."""

from __future__ import annotations

from typing import ClassVar

from lab.plugin_kit.operation import FailedError

from .aws import CallError, Json, wait_until
from .resource import Call, Plain, Resource, tag_specifications, tags_of, whole
from .shapes import ARN, REGION, TAGS, Block, ListOf, Property, Shape

_RULE = (
    Property("cidrBlocks", ListOf("string")),
    Property("description"),
    Property("fromPort", "number", required=True),
    Property("ipv6CidrBlocks", ListOf("string")),
    Property("prefixListIds", ListOf("string")),
    Property("protocol", required=True),
    Property("securityGroups", ListOf("string")),
    Property("self", "boolean"),
    Property("toPort", "number", required=True),
)
_SOURCES = ("cidrIpv4", "cidrIpv6", "prefixListId", "referencedSecurityGroupId")
_DELETE_LIMIT_S = 60


class SecurityGroup(Resource):
    """A security group. Without `egress`, it lets nothing out: AWS's own rule that lets out everything is removed."""

    title = "Security Group"
    shape: ClassVar = Shape(
        "aws:ec2/securityGroup:SecurityGroup",
        (
            Property("name", replaces=True, computed=True),
            Property("description", replaces=True, default="Managed by Pulumi"),
            Property("vpcId", replaces=True, computed=True),
            Property(
                "ingress", ListOf(Block("aws:ec2/SecurityGroupIngress:SecurityGroupIngress", _RULE)), computed=True
            ),
            Property("egress", ListOf(Block("aws:ec2/SecurityGroupEgress:SecurityGroupEgress", _RULE)), computed=True),
            Property("revokeRulesOnDelete", "boolean", default=False),
            *TAGS,
            REGION,
            ARN,
            Property("ownerId", output=True),
        ),
        autoname="name",
    )

    async def create(self, call: Call, inputs: Plain) -> str:
        """Creates it with the rules of the program alone."""
        answer = await call.ec2(
            "CreateSecurityGroup",
            GroupName=inputs["name"],
            Description=inputs.get("description") or "Managed by Pulumi",
            VpcId=inputs.get("vpcId"),
            TagSpecifications=tag_specifications("security-group", inputs.get("tags")),
        )
        identifier = call.exists(str(answer["GroupId"]))
        found = await call.found("DescribeSecurityGroups", "SecurityGroups", GroupIds=[identifier])
        if found and found.get("IpPermissionsEgress"):
            await call.ec2("RevokeSecurityGroupEgress", GroupId=identifier, IpPermissions=found["IpPermissionsEgress"])
        await _authorize(call, identifier, inputs)
        return identifier

    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """The group; rules that the program did not give inline are left out."""
        found = await call.found("DescribeSecurityGroups", "SecurityGroups", GroupIds=[identifier])
        if found is None:
            return None
        return {
            "name": found["GroupName"],
            "description": found["Description"],
            "vpcId": found.get("VpcId") or "",
            "ingress": _rules(found.get("IpPermissions", []), identifier) if state.get("ingress") else [],
            "egress": _rules(found.get("IpPermissionsEgress", []), identifier) if state.get("egress") else [],
            "revokeRulesOnDelete": state.get("revokeRulesOnDelete", False),
            "ownerId": found.get("OwnerId") or "",
            "arn": await call.arn("security-group", identifier, found.get("OwnerId")),
            **tags_of(found),
        }

    async def update(self, call: Call, identifier: str, old: Plain, new: Plain) -> None:
        """Tags and inline rules."""
        await call.tag(identifier, old, new)
        for name, way in (("ingress", "Ingress"), ("egress", "Egress")):
            before: list[Plain] = old.get(name) or []
            after: list[Plain] | None = new.get(name)
            if after is None or before == after:
                continue
            if before:
                permissions = [_permission(rule, identifier) for rule in before]
                await call.gone(f"RevokeSecurityGroup{way}", GroupId=identifier, IpPermissions=permissions)
            await _authorize(call, identifier, {name: after})

    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Deletes it, as soon as nothing has it any more."""

        async def deleted() -> bool | None:
            try:
                await call.gone("DeleteSecurityGroup", GroupId=identifier)
            except CallError as error:
                if error.code in {"DependencyViolation", "InvalidGroup.InUse"}:
                    return None
                raise
            return True

        await wait_until(call.operation, deleted, f"deleting Security Group ({identifier})", _DELETE_LIMIT_S)


class _Rule(Resource):
    """One rule of a security group."""

    way: ClassVar[str]
    forgets_failed_updates = True

    async def create(self, call: Call, inputs: Plain) -> str:
        """Adds it."""
        _check_rule(inputs)
        answer = await call.ec2(
            f"AuthorizeSecurityGroup{self.way}",
            GroupId=inputs["securityGroupId"],
            IpPermissions=[_single_permission(inputs)],
            TagSpecifications=tag_specifications("security-group-rule", inputs.get("tags")),
        )
        return str(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """The rule, found in its group."""
        filters = [{"Name": "group-id", "Values": [state["securityGroupId"]]}] if state.get("securityGroupId") else None
        try:
            answer = await call.ec2("DescribeSecurityGroupRules", Filters=filters)
        except CallError as error:
            if error.not_found:
                return None
            raise
        rules: list[Json] = answer["SecurityGroupRules"]
        found = next((rule for rule in rules if rule["SecurityGroupRuleId"] == identifier), None)
        if found is None:
            return None
        return {
            "securityGroupId": found["GroupId"],
            "ipProtocol": found["IpProtocol"],
            "fromPort": found.get("FromPort") if found.get("FromPort", -1) != -1 else state.get("fromPort"),
            "toPort": found.get("ToPort") if found.get("ToPort", -1) != -1 else state.get("toPort"),
            "cidrIpv4": found.get("CidrIpv4"),
            "cidrIpv6": found.get("CidrIpv6"),
            "prefixListId": found.get("PrefixListId"),
            "referencedSecurityGroupId": found.get("ReferencedGroupInfo", {}).get("GroupId"),
            "description": found.get("Description") or state.get("description"),
            "securityGroupRuleId": identifier,
            "arn": await call.arn("security-group-rule", identifier),
            **tags_of(found),
        }

    async def update(self, call: Call, identifier: str, old: Plain, new: Plain) -> None:
        """Changes it in place."""
        _check_rule(new)
        await call.tag(identifier, old, new)
        rule = {
            "IpProtocol": new["ipProtocol"],
            "FromPort": whole(new.get("fromPort")),
            "ToPort": whole(new.get("toPort")),
            "CidrIpv4": new.get("cidrIpv4"),
            "CidrIpv6": new.get("cidrIpv6"),
            "PrefixListId": new.get("prefixListId"),
            "ReferencedGroupId": new.get("referencedSecurityGroupId"),
            "Description": new.get("description"),
        }
        names = ("ipProtocol", "fromPort", "toPort", "description", *_SOURCES)
        if any(old.get(name) != new.get(name) for name in names):
            given = {name: value for name, value in rule.items() if value is not None}
            await call.ec2(
                "ModifySecurityGroupRules",
                GroupId=new["securityGroupId"],
                SecurityGroupRules=[{"SecurityGroupRuleId": identifier, "SecurityGroupRule": given}],
            )

    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Removes it."""
        await call.gone(
            f"RevokeSecurityGroup{self.way}", GroupId=state["securityGroupId"], SecurityGroupRuleIds=[identifier]
        )


def _rule_shape(token: str) -> Shape:
    return Shape(
        token,
        (
            Property("securityGroupId", required=True, replaces=True),
            Property("ipProtocol", required=True),
            Property("fromPort", "number"),
            Property("toPort", "number"),
            *(Property(name) for name in _SOURCES),
            Property("description"),
            *TAGS,
            REGION,
            ARN,
            Property("securityGroupRuleId", output=True),
        ),
    )


class IngressRule(_Rule):
    """What may come in."""

    title = "VPC Security Group Ingress Rule"
    way: ClassVar = "Ingress"
    shape: ClassVar = _rule_shape("aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule")


class EgressRule(_Rule):
    """What may go out."""

    title = "VPC Security Group Egress Rule"
    way: ClassVar = "Egress"
    shape: ClassVar = _rule_shape("aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule")


def _check_rule(inputs: Plain) -> None:
    given = [name for name in _SOURCES if inputs.get(name)]
    if len(given) != 1:
        raise FailedError(
            "Invalid Attribute Combination: Exactly one of these attributes must be configured: "
            "[cidr_ipv4,cidr_ipv6,prefix_list_id,referenced_security_group_id]"
        )


def _single_permission(inputs: Plain) -> Plain:
    note = {"Description": inputs["description"]} if inputs.get("description") else {}
    permission: Plain = {"IpProtocol": inputs["ipProtocol"]}
    for name, key in (("fromPort", "FromPort"), ("toPort", "ToPort")):
        if inputs.get(name) is not None:
            permission[key] = whole(inputs[name])
    if inputs.get("cidrIpv4"):
        permission["IpRanges"] = [{"CidrIp": inputs["cidrIpv4"], **note}]
    if inputs.get("cidrIpv6"):
        permission["Ipv6Ranges"] = [{"CidrIpv6": inputs["cidrIpv6"], **note}]
    if inputs.get("prefixListId"):
        permission["PrefixListIds"] = [{"PrefixListId": inputs["prefixListId"], **note}]
    if inputs.get("referencedSecurityGroupId"):
        permission["UserIdGroupPairs"] = [{"GroupId": inputs["referencedSecurityGroupId"], **note}]
    return permission


async def _authorize(call: Call, identifier: str, inputs: Plain) -> None:
    for name, way in (("ingress", "Ingress"), ("egress", "Egress")):
        if inputs.get(name):
            permissions = [_permission(rule, identifier) for rule in inputs[name]]
            await call.ec2(f"AuthorizeSecurityGroup{way}", GroupId=identifier, IpPermissions=permissions)


def _permission(rule: Plain, own: str) -> Plain:
    note = {"Description": rule["description"]} if rule.get("description") else {}
    permission: Plain = {"IpProtocol": rule["protocol"]}
    if rule["protocol"] != "-1":
        permission |= {"FromPort": whole(rule["fromPort"]), "ToPort": whole(rule["toPort"])}
    groups: list[str] = [*(rule.get("securityGroups") or []), *([own] if rule.get("self") else [])]
    for key, inner, values in (
        ("IpRanges", "CidrIp", rule.get("cidrBlocks")),
        ("Ipv6Ranges", "CidrIpv6", rule.get("ipv6CidrBlocks")),
        ("PrefixListIds", "PrefixListId", rule.get("prefixListIds")),
        ("UserIdGroupPairs", "GroupId", groups),
    ):
        if values:
            permission[key] = [{inner: value, **note} for value in values]
    return permission


def _rules(permissions: list[Json], own: str) -> list[Plain]:
    """Rules as the program writes them inline."""
    found: list[Plain] = []
    for each in permissions:
        groups = [pair["GroupId"] for pair in each.get("UserIdGroupPairs", [])]
        sources = [*each.get("IpRanges", []), *each.get("Ipv6Ranges", []), *each.get("UserIdGroupPairs", [])]
        rule: Plain = {
            "protocol": each["IpProtocol"],
            "fromPort": each.get("FromPort") or 0,
            "toPort": each.get("ToPort") or 0,
            "description": next((source["Description"] for source in sources if source.get("Description")), None),
            "cidrBlocks": [source["CidrIp"] for source in each.get("IpRanges", [])] or None,
            "ipv6CidrBlocks": [source["CidrIpv6"] for source in each.get("Ipv6Ranges", [])] or None,
            "securityGroups": [group for group in groups if group != own] or None,
            "self": True if own in groups else None,
        }
        found.append({name: value for name, value in rule.items() if value is not None})
    return found
