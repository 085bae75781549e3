"""Trains a policy on CartPole with RLinf's own workers: the update in the cloud, the environments at the edge.

    train.py --config CONFIG [--output FOLDER] [KEY=VALUE …]

Run it on the head, in the environment that Ray was started in. CONFIG is the rendered config, whose `cluster:`
block places the components `actor`, `rollout` and `env`; everything else comes from cartpole.yaml beside this
file, where CONFIG or KEY=VALUE (such as runner.seed=2) does not say otherwise. The other hosts need none of
these files. Exits with 1 if the mean return did not reach `runner.target_return`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, cast

os.environ.setdefault("RLINF_LOG_LEVEL", "WARNING")  # read by rlinf when it is imported, here and in its workers

import actor_critic
import ppo
import ray
import workers
from omegaconf import DictConfig, OmegaConf
from ray import cloudpickle
from report import Report
from rlinf.scheduler import Cluster, WorkerGroupFuncResult
from rlinf.utils.placement import HybridComponentPlacement
from workers import ACTOR, ENV, ROLLOUT, ActorWorker, EnvWorker, RolloutWorker

HERE = Path(__file__).parent


def main() -> int:
    """Places the workers, trains, reports; returns the exit code."""
    arguments = parse_arguments()
    config = load_config(arguments.config, arguments.overrides)
    for module in (actor_critic, ppo, workers):
        cloudpickle.register_pickle_by_value(module)  # the other hosts can't import what only the head has

    cluster = Cluster(cluster_cfg=config.cluster)
    placement = HybridComponentPlacement(config, cluster)
    num_peers = check_placement(placement)
    actor: Any = ActorWorker.create_group(config, num_peers)  # Any: a group has the methods of its workers
    rollout: Any = RolloutWorker.create_group(config)
    env: Any = EnvWorker.create_group(config)
    for name, group in ((ACTOR, actor), (ROLLOUT, rollout), (ENV, env)):
        group.launch(cluster, placement.get_strategy(name), name=name)
        print(f"{name:8} on {', '.join(group.host().wait())}", flush=True)

    report = Report(arguments.output, config.runner.window, config.runner.target_return)
    steps_each = config.algorithm.horizon * config.env.num_envs * num_peers
    started = time.monotonic()
    for iteration in range(1, config.runner.max_iterations + 1):
        wait_for(actor.send_weights(), rollout.receive_weights())
        collected, _, updated = wait_for(env.collect(), rollout.act(), actor.update())
        returns = [value for of_one_worker in collected for value in of_one_worker]
        done = report.add(iteration * steps_each, returns, time.monotonic() - started, updated[0])
        if done.mean_return >= config.runner.target_return:
            break
    report.draw()
    ray.shutdown()
    return conclude(report, config.runner.target_return)


def parse_arguments() -> argparse.Namespace:
    """The command line: `config`, a file that is there; `output`; `overrides`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, required=True, help="the rendered config, a YAML file")
    parser.add_argument("--output", type=Path, default=Path("cartpole-results"), help="folder for log and plot")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="such as runner.seed=2")
    arguments = parser.parse_args()
    if not arguments.config.is_file():
        parser.error(f"--config {arguments.config}: no such file; give what the stack output rlinf_config holds")
    return arguments


def load_config(rendered: Path, overrides: list[str]) -> DictConfig:
    """cartpole.yaml, overlaid with the rendered config and then with the command line's settings.

    cartpole.yaml has no `cluster:`, so that the rendered one is taken whole and nothing stale survives in it.
    """
    if "RAY_ADDRESS" not in os.environ:
        sys.exit(
            "RAY_ADDRESS is not set, and without it RLinf would start a Ray of its own and wait for ever: "
            "run this in the environment that Ray was started in"
        )
    layers = OmegaConf.load(HERE / "cartpole.yaml"), OmegaConf.load(rendered), OmegaConf.from_dotlist(overrides)
    config = cast(DictConfig, OmegaConf.merge(*layers))
    if "cluster" not in config:
        sys.exit(f"{rendered} has no `cluster:` block: give what the stack output rlinf_config holds")
    return config


def check_placement(placement: HybridComponentPlacement) -> int:
    """How many env workers there are, and rollout workers; ends the program if the placement doesn't fit."""
    sizes = {name: placement.get_world_size(name) for name in placement.components}
    if sizes.get(ACTOR) != 1 or not sizes.get(ENV) or sizes[ENV] != sizes.get(ROLLOUT):
        sys.exit(
            f"The config places these components, with so many processes: {sizes}. This example takes one {ACTOR} "
            f"process, and as many {ROLLOUT} as {ENV} processes: correct component_placement in the stack's config"
        )
    return sizes[ENV]


def wait_for(*calls: WorkerGroupFuncResult) -> list[list[Any]]:
    """What each call returned, one result per worker of its group, once all of them are done."""
    return [cast(list[Any], call.wait()) for call in calls]


def conclude(report: Report, target_return: float) -> int:
    """Says how training ended, in one line; returns the exit code."""
    first, last = report.iterations[0], report.iterations[-1]
    reached = last.mean_return >= target_return
    print(
        f"{'Learned' if reached else 'NOT learned'}: mean return {first.mean_return:.0f} → {last.mean_return:.0f} "
        f"(target {target_return:g}) in {last.iteration} iterations, {last.steps:,} steps, "
        f"{last.seconds:.0f} s; plot: {report.plot}"
    )
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
