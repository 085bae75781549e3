"""A substitute for Pulumi's `command` plugin 1.2.1, for machines that can't download it.

`plugin/` is the provider: real SSH and SFTP to real hosts, and local commands, with the original's behaviour, its
failures included; `tests/contract` holds both to the same suite. `materialize` lays it out as a folder that
`pulumi plugin install resource command 1.2.1 --file FOLDER` takes. It has no `command:remote:CopyFile`.
"""

from lab.command_plugin.materialize import VERSION, materialize

__all__ = ["VERSION", "materialize"]
