"""A substitute for Pulumi's `command` plugin 1.2.1, for machines that can't download it.

`plugin/` is the provider: real SSH and SFTP to real hosts, and local commands, with the original's behaviour, its
failures included; `tests/contract` holds both to the same suite. It has no `command:remote:CopyFile`.
"""

from pathlib import Path

from lab.plugin_kit.materialize import Substitute

SUBSTITUTE = Substitute("command", "1.2.1", Path(__file__).resolve().parent)
"""How it is laid out as a folder that `pulumi plugin install resource command 1.2.1 --file FOLDER` takes."""

__all__ = ["SUBSTITUTE"]
