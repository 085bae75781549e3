"""What every kind of resource has: its shape, and the calls that create, read, update and delete one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from lab.plugin_kit.operation import Operation

from .aws import Aws, CallError, Json
from .shapes import Shape

Plain: TypeAlias = "dict[str, Any]"
"""Properties without marks."""


@dataclass(frozen=True)
class Call:
    """One operation of the engine on one resource.

    Attributes:
        aws: the account.
        operation: who is at work, and whether it was cancelled.
        region: the resource's own, None where it is the provider's.
        made: id of what a creation has made so far, in a list; empty before there is anything.
    """

    aws: Aws
    operation: Operation
    region: str | None
    made: list[str] = field(default_factory=list[str])

    def exists(self, identifier: str) -> str:
        """Notes that a creation has made this: from here on the engine keeps it, whatever else fails."""
        self.made[:] = [identifier]
        return identifier

    async def ec2(self, operation: str, **parameters: object) -> Json:
        """Calls EC2 in the resource's region."""
        return await self.aws.call("ec2", operation, self.region, **parameters)

    async def found(self, operation: str, key: str, **parameters: object) -> Json | None:
        """The first of a list that EC2 describes, or None where there is none."""
        try:
            answer = await self.ec2(operation, **parameters)
        except CallError as error:
            if error.not_found:
                return None
            raise
        return next(iter(answer[key]), None)

    async def gone(self, operation: str, **parameters: object) -> None:
        """Calls EC2 to take something away; that it is gone already is no fault."""
        try:
            await self.ec2(operation, **parameters)
        except CallError as error:
            if not error.not_found:
                raise

    async def tag(self, identifier: str, old: Plain, new: Plain) -> None:
        """Makes a thing's tags those of its new arguments."""
        before: Plain = old.get("tags") or {}
        after: Plain = new.get("tags") or {}
        if removed := [{"Key": key} for key in before if key not in after]:
            await self.ec2("DeleteTags", Resources=[identifier], Tags=removed)
        if changed := {key: value for key, value in after.items() if before.get(key) != value}:
            await self.ec2("CreateTags", Resources=[identifier], Tags=tag_list(changed))

    async def owner(self) -> str:
        """The number of the account."""
        return str((await self.aws.call("sts", "GetCallerIdentity", self.region))["Account"])

    async def arn(self, kind: str, identifier: str, owner: str | None = None) -> str:
        """The ARN of an EC2 thing."""
        region = self.region or self.aws.config.region
        return f"arn:aws:ec2:{region}:{owner or await self.owner()}:{kind}/{identifier}"


class Resource(ABC):
    """A kind of resource."""

    shape: ClassVar[Shape]
    title: ClassVar[str]
    """What errors call it."""
    forgets_failed_updates: ClassVar[bool] = False
    """Whether a failed update leaves the recorded state as it was: so do kinds that the original makes with Terraform's
    plugin framework. Those of its older SDK record the new arguments, whether or not AWS has taken them."""

    @abstractmethod
    async def create(self, call: Call, inputs: Plain) -> str:
        """Creates one and returns its id; where more is done to it, `call.exists` is told the id first."""

    @abstractmethod
    async def read(self, call: Call, identifier: str, state: Plain) -> Plain | None:
        """What is in the account, None where it is gone. `state`: what is known of it, its arguments included."""

    async def update(self, call: Call, identifier: str, old: Plain, new: Plain) -> None:
        """Changes one; its tags, where a kind has nothing else that can change."""
        await call.tag(identifier, old, new)

    @abstractmethod
    async def delete(self, call: Call, identifier: str, state: Plain) -> None:
        """Deletes one; that it is gone already is no fault."""


def tag_list(tags: Plain) -> list[Plain]:
    """Tags as AWS takes them."""
    return [{"Key": key, "Value": str(value)} for key, value in tags.items()]


def tag_specifications(kind: str, tags: Plain | None) -> list[Plain] | None:
    """Tags for something about to be created."""
    return [{"ResourceType": kind, "Tags": tag_list(tags)}] if tags else None


def tags_of(found: Json) -> Plain:
    """`tags` and `tagsAll` of a described thing; AWS's own tags are left out."""
    tags = {each["Key"]: each["Value"] for each in found.get("Tags", []) if not each["Key"].startswith("aws:")}
    return {"tags": tags or None, "tagsAll": tags}


def whole(value: object) -> int | None:
    """A number as AWS takes it."""
    return None if value is None else int(float(str(value)))


def filters(**given: object) -> list[Plain]:
    """Filters as AWS takes them: `filters(vpc_id=…)`."""
    return [{"Name": name.replace("_", "-"), "Values": [value]} for name, value in given.items()]
