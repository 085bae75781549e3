"""The substitute `command` provider itself: what runs inside the plugin's own virtual environment.

It is copied there with `lab.plugin_kit` and started as `python -m lab.command_plugin.plugin ENGINE_ADDRESS`; nothing
else of the repository is with it.
"""
