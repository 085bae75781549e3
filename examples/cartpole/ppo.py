"""Proximal policy optimisation (Schulman et al. 2017) on one iteration's trajectories. It knows nothing of RLinf.

A trajectory is a dict of tensors over T steps of N environments:

    observations  [T + 1, N, observation_size] float32; the last is the one after the last step
    values        [T + 1, N] float32, the critic's at the time
    actions       [T, N] int64
    log_probs     [T, N] float32, of the actions at the time
    rewards       [T, N] float32
    terminated    [T, N] bool: the task ended here, there is no value after it
    done          [T, N] bool: the episode ended here, terminated or cut short by its time limit
    valid         [T, N] bool: false where the environment only reset itself and ignored the action
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from actor_critic import ActorCritic
from torch import nn

Trajectory = dict[str, torch.Tensor]


@dataclass(frozen=True)
class PpoConfig:
    """The `algorithm:` block of cartpole.yaml."""

    horizon: int
    epochs: int
    minibatch_size: int
    learning_rate: float
    gamma: float
    gae_lambda: float
    clip_ratio: float
    value_weight: float
    entropy_weight: float
    max_grad_norm: float


def estimate_advantages(trajectory: Trajectory, gamma: float, gae_lambda: float) -> torch.Tensor:
    """Generalised advantage estimates (Schulman et al. 2016), [T, N] float32.

    After a step that is done, `observations` holds the episode's final observation, so that its value stands in
    for what an episode cut short would still have earned.
    """
    values, rewards = trajectory["values"], trajectory["rewards"]
    continues = 1.0 - trajectory["done"].float()
    has_future = 1.0 - trajectory["terminated"].float()
    advantages = torch.zeros_like(rewards)
    following = torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        surprise = rewards[t] + gamma * has_future[t] * values[t + 1] - values[t]
        following = surprise + gamma * gae_lambda * continues[t] * following
        advantages[t] = following
    return advantages


def update(
    policy: ActorCritic, optimizer: torch.optim.Optimizer, trajectory: Trajectory, config: PpoConfig
) -> dict[str, float]:
    """Improves the policy in place on one iteration's trajectories.

    Returns:
        Means over all minibatches: `policy_loss`, `value_loss`, `entropy` (nats) and `clipped`, the share of
        samples whose probability ratio was clipped.
    """
    advantages = estimate_advantages(trajectory, config.gamma, config.gae_lambda)
    valid = trajectory["valid"]
    observations = trajectory["observations"][:-1][valid]  # [B, observation_size]
    actions, old_log_probs = trajectory["actions"][valid], trajectory["log_probs"][valid]  # [B] each
    advantages, returns = advantages[valid], (advantages + trajectory["values"][:-1])[valid]  # [B] each

    sums: dict[str, float] = {"policy_loss": 0.0, "value_loss": 0.0, "entropy": 0.0, "clipped": 0.0}
    minibatches = 0
    for _ in range(config.epochs):
        for batch in torch.randperm(len(observations)).split(config.minibatch_size):
            distribution, values = policy(observations[batch])
            ratio = (distribution.log_prob(actions[batch]) - old_log_probs[batch]).exp()
            gain = _normalised(advantages[batch])
            clipped = ratio.clamp(1 - config.clip_ratio, 1 + config.clip_ratio)
            policy_loss = -torch.min(ratio * gain, clipped * gain).mean()
            value_loss = nn.functional.mse_loss(values, returns[batch])
            entropy = distribution.entropy().mean()
            loss = policy_loss + config.value_weight * value_loss - config.entropy_weight * entropy

            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), config.max_grad_norm)
            optimizer.step()

            minibatches += 1
            sums["policy_loss"] += policy_loss.item()
            sums["value_loss"] += value_loss.item()
            sums["entropy"] += entropy.item()
            sums["clipped"] += (ratio != clipped).float().mean().item()
    return {name: total / minibatches for name, total in sums.items()}


def _normalised(advantages: torch.Tensor) -> torch.Tensor:
    return (advantages - advantages.mean()) / (advantages.std(correction=0) + 1e-8)
