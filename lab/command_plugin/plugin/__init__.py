"""The substitute `command` provider itself: what runs inside the plugin's own virtual environment.

It is copied there as the package `command_plugin` and started as `python -m command_plugin ENGINE_ADDRESS`; nothing
of the rest of the repository is with it. It imports no Pulumi SDK, only the SDK's generated protobuf modules
(`protocol`), because the SDK alone would cost a second at every start.
"""
