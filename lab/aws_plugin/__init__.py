"""A substitute for Pulumi's `aws` plugin, for machines that can't download it.

`plugin/` is the provider: the resources and functions that this project uses, each call going through botocore to
whatever answers at `AWS_ENDPOINT_URL`, in the lab a moto server, whose validation decides. It speaks to an endpoint
that it is given alone, never to Amazon itself. `tests/contract` holds it and the original to the same suite.
"""

from pathlib import Path

from lab.plugin_kit.materialize import Substitute

SUBSTITUTE = Substitute("aws", "7.51.1", Path(__file__).resolve().parent)
"""How it is laid out as a folder that `pulumi plugin install resource aws VERSION --file FOLDER` takes."""

__all__ = ["SUBSTITUTE"]
