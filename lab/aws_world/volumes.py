"""What EBS does not do to a volume, as EC2 says it: moto does all that it is asked for."""

from __future__ import annotations

from typing import Any


def enforce() -> None:
    """Has moto refuse to make a volume smaller."""
    from moto.ec2.exceptions import EC2ClientError  # noqa: PLC0415  # after the account's settings are made
    from moto.ec2.models.elastic_block_store import EBSBackend  # noqa: PLC0415  # the same

    modify = EBSBackend.modify_volume

    def modify_volume(self: Any, volume_id: str, target_size: int | None = None, *rest: Any, **given: Any) -> Any:  # noqa: ANN401  # as it is in moto
        if target_size is not None and int(target_size) < int(self.get_volume(volume_id).size):
            raise EC2ClientError("InvalidParameterValue", "New size cannot be smaller than existing size")
        return modify(self, volume_id, target_size, *rest, **given)

    EBSBackend.modify_volume = modify_volume
