"""The AWS account of a lab: moto's, in this process, with what moto lacks for one whose instances are real hosts.

Public addresses come from a given range, and no address is given twice; an instance without a subnet gets one, as in a
default VPC; what an interface's groups are changed to, its instance has; images, key pairs and types must exist, and
quotas are kept; there is no KMS key.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from lab.aws_world import quotas, volumes
from lab.aws_world.backend import ACCOUNT, REGION, backend
from lab.aws_world.catalog import IMAGES, Image

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

_STRICT = ("MOTO_ENABLE_AMI_VALIDATION", "MOTO_ENABLE_KEYPAIR_VALIDATION", "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION")


class Account:
    """The account, as a server.

    Args:
        host: address to serve at.
        port: 0 for any free one.
        addresses: public addresses that it may give away.
        changed: called after each request that may have changed something.
    """

    def __init__(
        self, host: str, port: int, addresses: Sequence[str], changed: Callable[[], None] = lambda: None
    ) -> None:
        # moto reads them when it is imported.
        os.environ.update(dict.fromkeys(_STRICT, "true"))
        os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
        from moto.moto_server.werkzeug_app import (  # noqa: PLC0415  # see above  # pyright: ignore[reportMissingTypeStubs]
            DomainDispatcherApplication,
            MotoRequestHandler,
            create_backend_app,
        )
        from werkzeug.serving import make_server  # noqa: PLC0415  # with it

        _give_addresses(addresses)
        _choose_subnets()
        quotas.enforce()
        volumes.enforce()
        _end_without_key()
        _keep_groups()
        _take_user_data()
        _count_reboots()
        _move_addresses()
        for image in IMAGES:
            _publish(image)
        _open_default_vpc()
        application = _Watched(DomainDispatcherApplication(create_backend_app), changed)
        self._server = make_server(host, port, application, threaded=True, request_handler=MotoRequestHandler)

    @property
    def port(self) -> int:
        """Where it is served."""
        return self._server.port

    def serve(self) -> None:
        """Serves until the process ends."""
        self._server.serve_forever()

    def serve_beside(self) -> None:
        """Serves in a thread of its own."""
        threading.Thread(target=self.serve, daemon=True).start()


class _Watched:
    """Tells after each request, but for those that only look."""

    def __init__(self, application: Callable[..., Iterable[bytes]], changed: Callable[[], None]) -> None:
        self._application = application
        self._changed = changed

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
        yield from self._application(environ, start_response)
        self._changed()


def addresses_in_use() -> set[str]:
    """Every public address that is given away."""
    ec2 = backend()
    used = {address.public_ip for address in ec2.addresses}
    return used | {interface.public_ip for interface in ec2.enis.values() if interface.public_ip}


def _give_addresses(addresses: Sequence[str]) -> None:
    from moto.ec2.exceptions import EC2ClientError  # noqa: PLC0415  # after the settings are made
    from moto.ec2.models import elastic_ip_addresses, elastic_network_interfaces  # noqa: PLC0415  # the same

    def free() -> str:
        used = addresses_in_use()
        for address in addresses:
            if address not in used:
                return address
        raise EC2ClientError("AddressLimitExceeded", "The maximum number of addresses has been reached.")

    setattr(elastic_ip_addresses, "random_ip", free)  # noqa: B010  # moto's module takes any
    setattr(elastic_network_interfaces, "random_public_ip", free)  # noqa: B010  # the same

    kind = elastic_network_interfaces.NetworkInterface
    start, stop = kind.start, kind.stop

    def has_elastic(interface: Any) -> bool:  # noqa: ANN401  # as it is in moto
        return any(address.eni is interface for address in backend().addresses)

    # An elastic address stays with a stopped instance.
    kind.start = lambda self: None if has_elastic(self) else start(self)
    kind.stop = lambda self: None if has_elastic(self) else stop(self)


def _move_addresses() -> None:
    """In a VPC an elastic address moves by itself to what it is given to, and leaves an instance that is terminated."""
    from moto.ec2.models import elastic_ip_addresses, instances  # noqa: PLC0415  # after the settings are made

    associate = elastic_ip_addresses.ElasticAddressBackend.associate_address
    terminate = instances.InstanceBackend.terminate_instances

    def associate_address(self: Any, *positional: Any, **given: Any) -> Any:  # noqa: ANN401  # as it is in moto
        return associate(self, *positional, **{**given, "reassociate": True})

    def terminate_instances(self: Any, instance_ids: list[str]) -> Any:  # noqa: ANN401  # as it is in moto
        terminated = terminate(self, instance_ids)
        for address in list(self.addresses):
            if address.association_id and address.instance is not None and address.instance.id in instance_ids:
                self.disassociate_address(association_id=address.association_id)
        return terminated

    elastic_ip_addresses.ElasticAddressBackend.associate_address = associate_address
    instances.InstanceBackend.terminate_instances = terminate_instances


def _count_reboots() -> None:
    """Moto keeps no trace of a reboot; the host must reboot all the same."""
    from moto.ec2.models import instances  # noqa: PLC0415  # after the settings are made

    original = instances.Instance.reboot

    def reboot(self: Any) -> None:  # noqa: ANN401  # as it is in moto
        original(self)
        self.lab_reboots = getattr(self, "lab_reboots", 0) + 1

    instances.Instance.reboot = reboot


def _take_user_data() -> None:
    """The client has encoded it once, as for everything that is no text; moto would have it encoded twice."""
    from moto.core.types import Base64EncodedString  # noqa: PLC0415  # after the settings are made
    from moto.ec2.responses import instances  # noqa: PLC0415  # the same

    original = getattr(instances, "parse_user_data")  # noqa: B009  # imported there, for it alone

    def parse(value: Any) -> Any:  # noqa: ANN401  # as it is in moto
        return Base64EncodedString.from_raw_bytes(value) if isinstance(value, bytes) else original(value)

    setattr(instances, "parse_user_data", parse)  # noqa: B010  # moto's module takes any


def _choose_subnets() -> None:
    from moto.ec2.models import instances  # noqa: PLC0415  # after the settings are made

    original = instances.InstanceBackend.run_instances

    def run_instances(self: Any, *positional: Any, **given: Any) -> Any:  # noqa: ANN401  # as it is in moto
        interfaces: list[dict[str, Any]] = given.get("nics") or []
        in_interface = any("SubnetId" in each for each in interfaces)
        if not given.get("subnet_id") and not in_interface and not given.get("launch_template"):
            zone = given.get("placement") or f"{self.region_name}a"
            subnet = self.get_default_subnets().get(zone)
            if subnet is not None and given.get("nics"):
                given["nics"][0]["SubnetId"] = subnet.id
            elif subnet is not None:
                given["subnet_id"] = subnet.id
        return original(self, *positional, **given)

    instances.InstanceBackend.run_instances = run_instances


def _end_without_key() -> None:
    """An instance whose disk needs a key that EBS can't use ends as it is launched: the account has none of its own."""
    from moto.ec2.models import instances  # noqa: PLC0415  # after the settings are made

    original = instances.InstanceBackend.run_instances

    def run_instances(self: Any, *positional: Any, **given: Any) -> Any:  # noqa: ANN401  # as it is in moto
        reservation = original(self, *positional, **given)
        disks: list[dict[str, Any]] = given.get("block_device_mappings") or []
        if any(each.get("Ebs", {}).get("KmsKeyId") for each in disks):
            self.terminate_instances([each.id for each in reservation.instances])
            for each in reservation.instances:
                each.state_reason = instances.StateReason(
                    "Client.InternalError: Client error on launch", "Client.InternalError"
                )
        return reservation

    instances.InstanceBackend.run_instances = run_instances


def _keep_groups() -> None:
    from moto.ec2.models import elastic_network_interfaces as interfaces  # noqa: PLC0415  # after the settings are made

    original = interfaces.NetworkInterfaceBackend.modify_network_interface_attribute

    def modify(self: Any, eni_id: str, *positional: Any, **given: Any) -> None:  # noqa: ANN401  # as it is in moto
        original(self, eni_id, *positional, **given)
        interface = self.get_network_interface(eni_id)
        if interface.instance is not None and interface.device_index == 0:
            interface.instance.security_groups = [*cast("list[Any]", vars(interface)["_group_set"])]

    interfaces.NetworkInterfaceBackend.modify_network_interface_attribute = modify


def _publish(image: Image) -> None:
    from moto.ec2.models.amis import Ami  # noqa: PLC0415  # after the settings are made
    from moto.ssm.models import Parameter, ssm_backends  # noqa: PLC0415  # the same

    ec2 = backend()
    ec2.amis[image.identifier] = Ami(
        ec2, image.identifier, name=image.name, owner_id=image.owner, public=True, virtualization_type="hvm",
        architecture=image.architecture, root_device_type="ebs", root_device_name=image.root_device,
        region_name=f"{REGION}a",
    )  # fmt: skip
    if not image.parameter:
        return
    parameters = vars(ssm_backends[ACCOUNT][REGION])["_parameters"]
    parameters[image.parameter].append(
        Parameter(
            account_id=ACCOUNT,
            name=image.parameter,
            value=image.identifier,
            parameter_type="String",
            description=None,
            allowed_pattern=None,
            keyid=None,
            last_modified_date=datetime.now(UTC),
            version=1,
            data_type="aws:ec2:image",
        )
    )  # fmt: skip


def _open_default_vpc() -> None:
    """Gives the default VPC the gateway and the route that AWS gives it."""
    ec2 = backend()
    vpc = ec2.get_default_vpc()
    gateway = ec2.create_internet_gateway()
    ec2.attach_internet_gateway(gateway.id, vpc.id)
    table = next(each for each in ec2.route_tables.values() if each.vpc_id == vpc.id)
    ec2.create_route(table.id, "0.0.0.0/0", gateway_id=gateway.id)
