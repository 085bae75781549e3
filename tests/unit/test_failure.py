"""What pulumi-command says about the way to a host is put in words that name the fix."""

from __future__ import annotations

import subprocess
import sys

import pytest

from components.failure import meaning

# The errors are those of pulumi-command 1.2.1.
ERRORS = {
    "after 5 failed attempts: ssh: handshake failed: ssh: host key mismatch": "another host key",
    "proxy: after 5 failed attempts: ssh: handshake failed: EOF": "Most often it shows another host key",
    "after 5 failed attempts: ssh: handshake failed: ssh: unable to authenticate, attempted methods [none publickey],"
    " no supported methods remain": "refuses the login",
    "after 5 failed attempts: dial tcp 203.0.113.9:22: connect: connection refused": "can't be reached",
    "after 5 failed attempts: dial tcp 203.0.113.9:22: i/o timeout": "can't be reached",
    'Process exited with status 1: running "exec sudo -n /opt/x up":\nsudo: a password is required': "NOPASSWD",
    "context deadline exceeded": "can't be reached",
    "after 5 failed attempts: dial tcp: lookup robot.example: no such host": "can't be resolved",
}


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_on_the_way_is_explained(error: str) -> None:
    assert ERRORS[error] in str(meaning([error]))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("after 93 failed attempts: dial tcp 203.0.113.9:22: i/o timeout", "aws.ssh_from"),
        ("after 93 failed attempts: ssh: handshake failed: EOF", "get-console-output"),
        ("ssh: handshake failed: ssh: unable to authenticate, attempted methods [none]", "cluster.aws.public_key"),
    ],
)
def test_a_machine_that_is_created_has_settings_of_its_own_to_look_at(error: str, text: str) -> None:
    told = str(meaning([error], created=True))
    assert text in told
    assert "ssh.host_key" not in told


def test_what_a_script_says_is_not_talked_over() -> None:
    assert meaning(['Process exited with status 1: running "exec bash -s -- up":\nedge-1: refused to listen']) is None
    assert meaning([]) is None


@pytest.mark.parametrize(
    ("raised", "printed"),
    [
        ("raise KeyboardInterrupt", False),
        ("import grpc; grpc.insecure_channel('127.0.0.1:9').unary_unary('/a/b')(b'', timeout=5)", False),
        ("raise ValueError('a fault of the program')", True),
    ],
)
def test_only_a_vanished_engine_is_passed_over_in_silence(raised: str, printed: bool) -> None:
    code = f"from components.failure import say_nothing_after_the_engine as quiet\nquiet()\n{raised}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert ("Traceback" in done.stderr) == printed


@pytest.mark.parametrize(
    ("raised", "printed"),
    [
        ("grpc.insecure_channel('127.0.0.1:9').unary_unary('/a/b')(b'', timeout=5)", False),
        ("raise ValueError('a fault of the program')", True),
    ],
)
def test_nor_is_its_end_told_as_a_fault_of_the_program(raised: str, printed: bool) -> None:
    code = f"""
import grpc, pulumi
from components.failure import say_nothing_after_the_engine as quiet
pulumi.log.error = lambda text: print(text)
quiet()
try:
    try:
        {raised}
    except grpc.RpcError:
        raise pulumi.RunError("Resource monitor has terminated") # as the SDK does
except Exception:
    pulumi.log.error("Program failed with an unhandled exception")
pulumi.log.error("told")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ("unhandled" in done.stdout) == printed
    assert "told" in done.stdout
