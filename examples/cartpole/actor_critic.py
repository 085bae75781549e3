"""The policy: a small actor-critic for discrete actions. It knows nothing of RLinf."""

from __future__ import annotations

import torch
from torch import nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    """Action logits and a state value from an observation, by two separate networks."""

    def __init__(self, observation_size: int, num_actions: int, hidden_size: int) -> None:
        """Builds both networks, two hidden layers each."""
        super().__init__()
        self.actor = _mlp(observation_size, hidden_size, num_actions, output_gain=0.01)
        self.critic = _mlp(observation_size, hidden_size, 1, output_gain=1.0)

    def forward(self, observations: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        """Evaluates observations.

        Args:
            observations: [B, observation_size] float32.

        Returns:
            The distribution over actions, batch shape [B], and the values, [B] float32.
        """
        return Categorical(logits=self.actor(observations)), self.critic(observations).squeeze(-1)


def _mlp(inputs: int, hidden: int, outputs: int, output_gain: float) -> nn.Sequential:
    layers = [nn.Linear(inputs, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, outputs)]
    for layer, gain in zip(layers, (2**0.5, 2**0.5, output_gain), strict=True):
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])
