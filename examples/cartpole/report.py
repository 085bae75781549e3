"""What a person sees of training: a line and a bar per iteration, a log for programs, and a plot."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import asdict, dataclass
from pathlib import Path

from matplotlib.figure import Figure

BAR_WIDTH = 40


@dataclass(frozen=True)
class Iteration:
    """One line of log.jsonl.

    Attributes:
        iteration: from 1.
        steps: environment steps since the start, of all environments.
        episodes: finished since the start.
        mean_return: of the latest finished episodes; `window` of the config says how many.
        seconds: since the first iteration began.
        metrics: PPO's, see `ppo.update`.
    """

    iteration: int
    steps: int
    episodes: int
    mean_return: float
    seconds: float
    metrics: dict[str, float]


class Report:
    """Takes in iterations as they end. Writes log.jsonl as it goes and reward.png in the end."""

    def __init__(self, folder: Path, window: int, target_return: float) -> None:
        """Empties log.jsonl.

        Args:
            folder: for both files; made if need be.
            window: how many finished episodes a mean return is over.
            target_return: drawn in the plot, and the full length of the bars.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "log.jsonl"
        self._log.write_text("")
        self.plot = folder / "reward.png"
        self._latest: deque[float] = deque(maxlen=window)
        self._episodes = 0
        self._target_return = target_return
        self.iterations: list[Iteration] = []

    def add(self, steps: int, returns: list[float], seconds: float, metrics: dict[str, float]) -> Iteration:
        """Logs and prints an iteration.

        Args:
            steps: environment steps since the start.
            returns: of the episodes that ended in this iteration.
            seconds: since the first iteration began.
            metrics: PPO's.
        """
        self._latest.extend(returns)
        self._episodes += len(returns)
        mean_return = sum(self._latest) / len(self._latest) if self._latest else 0.0
        done = Iteration(len(self.iterations) + 1, steps, self._episodes, mean_return, seconds, metrics)
        self.iterations.append(done)
        with self._log.open("a") as log:
            log.write(json.dumps(asdict(done)) + "\n")
        bar = "█" * min(BAR_WIDTH, round(BAR_WIDTH * mean_return / self._target_return))
        print(
            f"iteration {done.iteration:3d}  steps {steps:7,d}  mean return {mean_return:6.1f}  "
            f"{bar:<{BAR_WIDTH}}  {seconds:5.1f} s",
            flush=True,
        )
        return done

    def draw(self) -> None:
        """Draws the mean return over environment steps into reward.png."""
        figure = Figure(figsize=(7, 4), dpi=120, layout="constrained")
        axes = figure.subplots()
        axes.plot([i.steps for i in self.iterations], [i.mean_return for i in self.iterations], marker="o")
        axes.axhline(self._target_return, linestyle="--", color="grey", label=f"target {self._target_return:g}")
        axes.set(xlabel="environment steps", ylabel="mean return", title="CartPole, trained across cloud and edge")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend(loc="lower right")
        figure.savefig(self.plot)
