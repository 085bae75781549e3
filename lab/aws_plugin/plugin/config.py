"""The provider's configuration: from the stack, the provider's arguments and the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from lab.plugin_kit.operation import FailedError
from lab.plugin_kit.values import Properties, Value, plain_object

REPLACING = ("region",)
"""What makes resources others when it changes: each belongs to a region."""

NO_CREDENTIALS = """\
No valid credential sources found.
Please see https://www.pulumi.com/registry/packages/aws/installation-configuration/ for more information about \
providing credentials."""
INVALID_CREDENTIALS = """\
The configured AWS credentials are invalid or have expired.
Please see https://www.pulumi.com/registry/packages/aws/installation-configuration/ for more information about \
providing credentials."""
NO_REGION = """\
Missing region configuration
Make sure you have set your AWS region, e.g. `pulumi config set aws:region us-west-2`."""
NO_PROFILE = """\
The AWS profile "{profile}" was not found.{others}
Check the `aws:profile` configuration and the AWS_PROFILE environment variable."""
NO_ENDPOINT = (
    "this substitute for Pulumi's aws plugin speaks to a given endpoint alone, never to Amazon: set AWS_ENDPOINT_URL, "
    "as the lab does, or install the official plugin"
)


@dataclass(frozen=True)
class Config:
    """One provider's configuration. Secrets are not in its `repr`."""

    region: str
    profile: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    default_tags: Mapping[str, str] = field(default_factory=dict[str, str])
    endpoints: Mapping[str, str] = field(default_factory=dict[str, str])
    skip_credentials_validation: bool = False

    def endpoint(self, service: str) -> str:
        """Where a service answers.

        Raises:
            FailedError: nobody has said.
        """
        found = self.endpoints.get(service) or os.environ.get(f"AWS_ENDPOINT_URL_{service.upper()}")
        found = found or os.environ.get("AWS_ENDPOINT_URL")
        if not found:
            raise FailedError(NO_ENDPOINT)
        return found

    def session(self) -> Any:  # noqa: ANN401  # botocore has no types
        """A botocore session with these credentials.

        Raises:
            FailedError: there are none, or the profile is unknown.
        """
        import botocore.exceptions as faults  # noqa: PLC0415  # only where something is called
        import botocore.session  # noqa: PLC0415  # the same

        # No metadata service answers on a workstation, and asking for it takes seconds.
        os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
        session: Any = botocore.session.Session(profile=self.profile)
        if self.access_key and self.secret_key:
            session.set_credentials(self.access_key, self.secret_key, self.token)
        try:
            found = session.get_credentials()
        except faults.ProfileNotFound:
            known = ", ".join(session.available_profiles)
            others = f"\nConfigured profiles: {known}." if known else ""
            raise FailedError(NO_PROFILE.format(profile=self.profile, others=others)) from None
        if found is None:
            raise FailedError(NO_CREDENTIALS)
        return session

    def client(self, session: Any, service: str, region: str) -> Any:  # noqa: ANN401  # botocore has no types
        """A client of that session."""
        from botocore.config import Config as Settings  # noqa: PLC0415  # only where something is called

        settings = Settings(retries={"total_max_attempts": 2}, connect_timeout=10, max_pool_connections=32)
        return session.create_client(service, region_name=region, endpoint_url=self.endpoint(service), config=settings)


def config_of(properties: Properties) -> Config:
    """The configuration that a provider's inputs and the environment give."""
    values = {name: _parsed(value) for name, value in plain_object(properties).items()}
    return Config(
        region=_text(values, "region") or _environment("AWS_REGION", "AWS_DEFAULT_REGION") or "",
        profile=_text(values, "profile") or _environment("AWS_PROFILE"),
        access_key=_text(values, "accessKey") or _environment("AWS_ACCESS_KEY_ID"),
        secret_key=_text(values, "secretKey") or _environment("AWS_SECRET_ACCESS_KEY"),
        token=_text(values, "token") or _environment("AWS_SESSION_TOKEN"),
        default_tags=_default_tags(values.get("defaultTags")),
        endpoints=_endpoints(values.get("endpoints")),
        skip_credentials_validation=values.get("skipCredentialsValidation") is True
        or (_environment("AWS_SKIP_CREDENTIALS_VALIDATION") or "").lower() in {"1", "t", "true"},
    )


def _parsed(value: Value) -> Value:
    """What is no text comes as JSON from the SDK and from the stack's settings."""
    if isinstance(value, str) and (value[:1] in {"[", "{"} or value in {"true", "false"}):
        return cast("Value", json.loads(value))
    return value


def _text(values: Mapping[str, Value], name: str) -> str | None:
    value = values.get(name)
    return value if isinstance(value, str) and value else None


def _environment(*names: str) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)


def _default_tags(value: Value) -> dict[str, str]:
    tags = value.get("tags") if isinstance(value, dict) else None
    return {key: str(each) for key, each in tags.items()} if isinstance(tags, dict) else {}


def _endpoints(value: Value) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in value if isinstance(value, list) else []:
        if isinstance(each, dict):
            found |= {service: url for service, url in each.items() if isinstance(url, str)}
    return found
