"""The demo: the whole road from nothing to a cluster on this machine, and on to a trained policy.

It does what a user would do by hand, with the same commands, and says which.
"""

from __future__ import annotations

import argparse
import secrets
import subprocess
import sys
from pathlib import Path

from lab import world
from lab.errors import LabError
from lab.paths import CLONE, Cache
from lab.progress import note, step
from lab.rlinf_env import build
from lab.session import Session
from lab.stack import Stack, StackError
from lab.world import Lab

NAME = "demo"
_VENV_ON_HOSTS = "/opt/rlinf/venv"
_LAUNCH = "/opt/rlinf-cloud-edge/libexec/launch.sh"
_CONFIG_ON_HEAD = "/etc/rlinf-cloud-edge/rlinf/cluster.yaml"
_RESULTS = CLONE / "out" / "cartpole"


def main() -> int:
    """Runs the demo as the command line says; returns the exit code."""
    arguments = parse_arguments()
    lab = Lab(Cache.from_environment(), NAME)
    try:
        return take_down(lab) if arguments.down else bring_up(lab, arguments.edges, train=arguments.train)
    except (LabError, StackError, subprocess.CalledProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted; script/demo goes on from here, script/demo --down cleans up", file=sys.stderr)
        return 130


def parse_arguments() -> argparse.Namespace:
    """The command line: `edges`, `train`, `down`."""
    parser = argparse.ArgumentParser(
        prog="script/demo",
        description="Boots a cloud-edge world on this machine, runs `pulumi up` on it and prints the outputs. "
        "Leaves it running for a look; safe to run again.",
    )
    parser.add_argument("--edges", type=int, default=1, metavar="N", help="edges, each behind a NAT of its own")
    parser.add_argument("--train", action="store_true", help="then train a small policy with RLinf's own workers")
    parser.add_argument("--down", action="store_true", help="take the world down, with all that is left of it")
    arguments = parser.parse_args()
    if not 1 <= arguments.edges <= 32:
        parser.error(f"--edges {arguments.edges}: from 1 to 32")
    return arguments


def bring_up(lab: Lab, edges: int, *, train: bool) -> int:
    """The world, the stack, its outputs and, if wanted, the training."""
    cache = lab.cache
    if train:
        build(cache.rlinf, cache.uv)
    world.up(lab, clouds=1, edges=edges)
    stack = Stack(CLONE, Session(lab))
    stack.create(secret=secrets.token_urlsafe(32))
    if train:
        stack.change(lambda cluster: cluster.update(ray={"version": "2.60.0", "venv": _VENV_ON_HOSTS}))
    with step("pulumi up"):
        stack.stream("up", "--yes", "--skip-preview", "--suppress-outputs")
    print_outputs(stack)
    return train_policy(stack) if train else 0


def print_outputs(stack: Stack) -> None:
    """The outputs that a person looks at, and how to look at more."""
    for name in ("overlay_ips", "nodes", "rlinf_config"):
        print(f"\n$ pulumi stack output {name}")
        print(stack.pulumi("stack", "output", name).strip())
    print(
        '\nHave a look:      eval "$(script/lab env)"   and then plain pulumi and ssh commands, such as'
        "\n                  pulumi stack output, pulumi up, ssh edge-1, pulumi destroy"
        "\nTrain a policy:   script/demo --train"
        "\nTake it down:     script/demo --down"
    )


def train_policy(stack: Stack) -> int:
    """Trains the example's policy from the head, in the environment of Ray; brings log and plot here."""
    head = "cloud-1"
    train = (
        f"{_LAUNCH} python cartpole/train.py --config {_CONFIG_ON_HEAD} --output cartpole-results 2>cartpole-stderr.txt"
    )
    with step("Training a policy for CartPole: update on the cloud node, rollout and environments on the edge"):
        stack.lab.stream("scp", "-qr", str(CLONE / "examples" / "cartpole"), f"{head}:")
        try:
            stack.lab.stream("ssh", head, train)
        except subprocess.CalledProcessError:
            stack.lab.stream("ssh", head, "tail -n 30 cartpole-stderr.txt")
            raise
        _RESULTS.mkdir(parents=True, exist_ok=True)
        stack.lab.stream("scp", "-q", f"{head}:cartpole-results/*", str(_RESULTS))
    print(f"\nThe reward, iteration by iteration: {_shown(_RESULTS / 'reward.png')}")
    return 0


def take_down(lab: Lab) -> int:
    """Everything of the demo is gone: hosts, networks, stack and its settings."""
    if not world.down(lab):
        note("The demo is not up, and nothing is left of it")
    Stack(CLONE, Session(lab)).settings_file.unlink(missing_ok=True)
    return 0


def _shown(path: Path) -> str:
    return str(path.relative_to(CLONE))


if __name__ == "__main__":
    sys.exit(main())
