"""Calls to AWS: one method for all of them, failures in the words of the original, waits with a limit."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from lab.plugin_kit.operation import FailedError, Operation

if TYPE_CHECKING:
    from .config import Config

T = TypeVar("T")
Json = dict[str, Any]

_SERVICES = {"ec2": "EC2", "ssm": "SSM", "sts": "STS"}
_POLL_S = 0.3


class CallError(FailedError):
    """AWS refused a call.

    Attributes:
        code: AWS's own name for what is wrong, such as `InvalidAMIID.NotFound`.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def not_found(self) -> bool:
        """Whether the thing that the call is about is not there."""
        return self.code.endswith((".NotFound", ".Malformed", "NotFound"))


class Aws:
    """The clients of one configuration, made when they are first needed.

    Args:
        config: with credentials and an endpoint.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self._clients: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()
        self._session: Any = None

    async def call(self, service: str, operation: str, region: str | None = None, **parameters: object) -> Json:
        """Calls AWS; parameters that are None are left out.

        Raises:
            CallError: AWS refused.
            FailedError: the endpoint could not be reached, or a parameter is of the wrong type.
        """
        given = {name: value for name, value in parameters.items() if value is not None}
        return await asyncio.to_thread(self._call, service, operation, region or self.config.region, given)

    def _call(self, service: str, operation: str, region: str, parameters: Json) -> Json:
        import botocore.exceptions as faults  # noqa: PLC0415  # an unchanged stack calls nothing

        about = f"operation error {_SERVICES[service]}: {operation}"
        try:
            method: Callable[..., Json] = getattr(self._client(service, region), _snake(operation))
            return method(**parameters)
        except faults.ClientError as error:
            response = cast("Json", error.response)
            meta, fault = response.get("ResponseMetadata", {}), response.get("Error", {})
            code = str(fault.get("Code", ""))
            raise CallError(
                f"{about}, https response error StatusCode: {meta.get('HTTPStatusCode', 0)}, "
                f"RequestID: {meta.get('RequestId', '')}, api error {code}: {fault.get('Message', '')}",
                code,
            ) from None
        except faults.BotoCoreError as error:
            raise FailedError(f"{about}, request send failed, {error}") from None

    def _client(self, service: str, region: str) -> Any:  # noqa: ANN401  # botocore has no types
        with self._lock:
            client = self._clients.get((service, region))
            if client is None:
                if self._session is None:
                    self._session = self.config.session()
                client = self._clients[service, region] = self.config.client(self._session, service, region)
            return client


async def wait_until(
    operation: Operation, probe: Callable[[], Awaitable[T | None]], what: str, limit: float = 600
) -> T:
    """Asks again and again until there is an answer.

    Raises:
        FailedError: there is none in time, or the operation was cancelled.
    """
    end = time.monotonic() + limit
    while (answer := await probe()) is None:
        if time.monotonic() >= end:
            raise FailedError(f"{what}: timeout while waiting (timeout: {limit:.0f}s)")
        if not await operation.cancellation.pause(_POLL_S):
            raise operation.cancellation.failure
    return answer


def _snake(operation: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
