"""Starts the plugin: see `lab.plugin_kit.serving`."""

from __future__ import annotations

from lab.plugin_kit.serving import main

from .server import Provider

main(Provider)
