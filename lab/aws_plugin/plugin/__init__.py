"""The substitute `aws` provider itself: what runs inside the plugin's own virtual environment.

It is copied there with `lab.plugin_kit` and started as `python -m lab.aws_plugin.plugin ENGINE_ADDRESS`; nothing else
of the repository is with it.
"""
