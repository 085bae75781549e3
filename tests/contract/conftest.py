"""Fixtures of the command contract: the plugin under test, and the servers it logs in to.

The plugin is the folder that `COMMAND_PLUGIN` names, or the substitute built here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lab.command_plugin import SUBSTITUTE
from lab.paths import Cache
from lab.toolchain import provider_plugin, pulumi_cli
from tests.contract.aws_fixtures import aws_endpoint, aws_plugin, world
from tests.contract.aws_program_stack import aws_program, aws_stack
from tests.contract.command_harness import Provider
from tests.contract.command_sshd import Key, Keyring, Sshd, free_port

__all__ = ["aws_endpoint", "aws_plugin", "aws_program", "aws_stack", "world"]

StartSshd = Callable[..., Sshd]
StartProvider = Callable[..., Provider]


@pytest.fixture(scope="session")
def command_plugin() -> Path:
    """The folder of the plugin under test."""
    return provider_plugin.under_test(os.environ, Cache.from_environment(), SUBSTITUTE)


@pytest.fixture(scope="session")
def bin_dirs() -> list[Path]:
    """Pulumi's CLI and its language host."""
    return list(pulumi_cli.ensure(Cache.from_environment()).bin_dirs)


@pytest.fixture(scope="module")
def module_provider(command_plugin: Path) -> Iterator[Provider]:
    """A running plugin, shared by a module's tests."""
    provider = Provider.start(command_plugin)
    yield provider
    provider.close()


@pytest.fixture
def provider(module_provider: Provider) -> Provider:
    """A running plugin with an empty log. Not to be cancelled, and nothing may be left hanging in it."""
    module_provider.forget()
    return module_provider


@pytest.fixture
def start_provider(command_plugin: Path) -> Iterator[StartProvider]:
    """Starts a plugin of the test's own: `start_provider(VARIABLE="value")`."""
    with ExitStack() as running:

        def start(**variables: str) -> Provider:
            provider = Provider.start(command_plugin, variables)
            running.callback(provider.close)
            return provider

        yield start


@pytest.fixture(scope="session")
def keyring(tmp_path_factory: pytest.TempPathFactory) -> Keyring:
    """Keys for servers and clients."""
    return Keyring(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def sshd(keyring: Keyring, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A stock OpenSSH server."""
    server = Sshd(free_port(), keyring, tmp_path_factory.mktemp("sshd")).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def bastion(keyring: Keyring, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Another stock OpenSSH server, to jump through."""
    server = Sshd(free_port(), keyring, tmp_path_factory.mktemp("bastion")).start()
    yield server
    server.stop()


@pytest.fixture
def start_sshd(keyring: Keyring, tmp_path: Path) -> Iterator[StartSshd]:
    """Starts a server of the test's own: `start_sshd("MaxStartups 2", host_keys=(key,), port=…)`."""
    with ExitStack() as running:

        def start(*options: str, host_keys: tuple[Key, ...] = (), port: int | None = None) -> Sshd:
            server = Sshd(port or free_port(), keyring, tmp_path, options, host_keys).start()
            running.callback(server.stop)
            return server

        yield start
