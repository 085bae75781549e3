"""The three RLinf workers, and what they send each other in an iteration.

    actor (cloud)     send_weights ──weights──► rollout           update ◄──trajectory── env
    rollout (edge)    receive_weights           act ◄──observations, actions──► env
    env (edge)                                  collect

All of it goes by RLinf's send and recv: Gloo, over the device named in RLINF_COMM_NET_DEVICES. Env worker i is
served by rollout worker i, on whichever hosts the config places them.
"""

from __future__ import annotations

import socket
from typing import cast

import gymnasium as gym
import torch
from actor_critic import ActorCritic
from omegaconf import DictConfig
from ppo import PpoConfig, Trajectory, update
from rlinf.scheduler import Worker

ACTOR, ROLLOUT, ENV = "actor", "rollout", "env"
"""Names of the worker groups; the components of the config have the same."""


class PlacedWorker(Worker):
    """A worker that can tell where it was placed."""

    def host(self) -> str:
        """The name of the host that it runs on."""
        return socket.gethostname()


class ActorWorker(PlacedWorker):
    """Holds the policy that learns. One process."""

    def __init__(self, config: DictConfig, num_peers: int) -> None:
        """Starts with a fresh policy.

        Args:
            config: the whole config.
            num_peers: how many rollout workers there are, and env workers.
        """
        super().__init__()
        torch.manual_seed(config.runner.seed)
        self._num_peers = num_peers
        self._ppo = PpoConfig(**config.algorithm)
        self._policy = make_policy(config)
        self._optimizer = torch.optim.Adam(self._policy.parameters(), lr=self._ppo.learning_rate, eps=1e-5)

    def send_weights(self) -> None:
        """Sends the policy's weights to every rollout worker."""
        for rank in range(self._num_peers):
            self.send(dict(self._policy.state_dict()), ROLLOUT, rank)

    def update(self) -> dict[str, float]:
        """Receives this iteration's trajectories and improves the policy on them; returns PPO's metrics."""
        parts = [cast(Trajectory, self.recv(ENV, rank)) for rank in range(self._num_peers)]
        trajectory = {name: torch.cat([part[name] for part in parts], dim=1) for name in parts[0]}
        return update(self._policy, self._optimizer, trajectory, self._ppo)


class RolloutWorker(PlacedWorker):
    """Chooses actions with a copy of the policy, for the env worker of the same rank."""

    def __init__(self, config: DictConfig) -> None:
        """Starts with weights that are overwritten by the first that it receives."""
        super().__init__()
        torch.manual_seed(config.runner.seed + 1 + self._rank)
        self._horizon = int(config.algorithm.horizon)
        self._policy = make_policy(config)

    def receive_weights(self) -> None:
        """Takes over the actor's weights."""
        self._policy.load_state_dict(cast(dict[str, torch.Tensor], self.recv(ACTOR, 0)))

    @torch.no_grad()
    def act(self) -> None:
        """Answers one iteration's observations, and the one after its last step, whose value is needed.

        It gets [N, observation_size] float32 and answers `actions` [N] int64, `log_probs` and `values` [N] float32.
        """
        for _ in range(self._horizon + 1):
            distribution, values = self._policy(self.recv(ENV, self._rank))
            actions = distribution.sample()
            answer = {"actions": actions, "log_probs": distribution.log_prob(actions), "values": values}
            self.send(answer, ENV, self._rank)


class EnvWorker(PlacedWorker):
    """Steps N environments at once. Episodes run on from one iteration into the next."""

    def __init__(self, config: DictConfig) -> None:
        """Makes and resets the environments."""
        super().__init__()
        self._horizon = int(config.algorithm.horizon)
        self._envs = gym.make_vec(config.env.id, num_envs=config.env.num_envs)
        observations, _ = self._envs.reset(seed=config.runner.seed + self._rank)
        self._observations = torch.from_numpy(observations.copy())  # [N, observation_size]
        self._returns = torch.zeros(config.env.num_envs)  # [N], of the episodes under way
        self._resetting = torch.zeros(config.env.num_envs, dtype=torch.bool)  # [N]

    def collect(self) -> list[float]:
        """Runs one iteration's steps and sends the trajectory to the actor.

        Gymnasium resets an environment in the step after its last one: that step is marked not valid.

        Returns:
            The returns of the episodes that ended, in the order in which they did.
        """
        steps: list[Trajectory] = []
        ended: list[float] = []
        for _ in range(self._horizon):
            answer = self._ask()
            observations, rewards, terminated, truncated, _ = self._envs.step(answer["actions"].numpy())
            step = {
                **answer,
                "observations": self._observations,
                "rewards": torch.tensor(rewards, dtype=torch.float32),
                "terminated": torch.from_numpy(terminated.copy()),
                "done": torch.from_numpy(terminated | truncated),
                "valid": ~self._resetting,
            }
            steps.append(step)
            self._returns += step["rewards"]
            ended += self._returns[step["done"]].tolist()
            self._returns[step["done"]] = 0.0
            self._observations, self._resetting = torch.from_numpy(observations.copy()), step["done"]
        after = {"observations": self._observations, "values": self._ask()["values"]}
        trajectory = {name: torch.stack([step[name] for step in [*steps, after] if name in step]) for name in steps[0]}
        self.send(trajectory, ACTOR, 0)
        return ended

    def _ask(self) -> dict[str, torch.Tensor]:
        """The rollout worker's answer to the current observations."""
        self.send(self._observations, ROLLOUT, self._rank)
        return cast(dict[str, torch.Tensor], self.recv(ROLLOUT, self._rank))


def make_policy(config: DictConfig) -> ActorCritic:
    """The policy for the config's environment, with fresh weights."""
    env = gym.make(config.env.id)
    (observation_size,) = cast(gym.spaces.Box, env.observation_space).shape
    num_actions = int(cast(gym.spaces.Discrete, env.action_space).n)
    return ActorCritic(observation_size, num_actions, config.model.hidden_size)
