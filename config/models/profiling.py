"""`profiling` of RLinf's `cluster:` block, the only further key of which RLinf 0.3.0 checks what is in it.

The fields and rules are those of `ProfileConfig`, `NsightConfig` and `RocprofSysConfig`.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from config.models.base import Hidden, Integer, Line, Model, Truth


class Profiling(Model):
    """What all profilers have in common."""

    enabled: Truth = True
    """Whether workers are profiled."""
    worker_groups: list[Line] | Line | None = None
    """Names of the worker groups to profile, or `all`."""
    steps: list[Annotated[Integer, Field(ge=0)]] | None = None
    """Training steps to profile; all of them when left out."""
    output_dir: Line | None = None
    """Folder of the reports."""


class Nsight(Profiling):
    """NVIDIA Nsight Systems."""

    backend: Literal["nsight"]
    """RLinf's name of the profiler."""
    options: dict[Line, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """Options of `nsys profile` with values."""
    flags: list[Line] | Line | None = None
    """Options of `nsys profile` without values."""

    @model_validator(mode="after")
    def _no_option_twice(self) -> Self:
        for one, other in (("stop-on-range-end", "capture-range-end"), ("o", "output")):
            if one in self.options and other in self.options:
                raise ValueError(f"must not have both options {one} and {other}")
        flags = [self.flags] if isinstance(self.flags, str) else self.flags or []
        gating = {"capture-range", "capture-range-end"} if self.steps is not None else set[str]()
        renamed = {"capture-range-end" if name == "stop-on-range-end" else name for name in self.options}
        if both := sorted({*renamed, *gating}.intersection(flags)):
            raise ValueError(f"must not have {', '.join(both)} as an option and as a flag")
        return self


class RocprofSys(Profiling):
    """AMD ROCm Systems Profiler."""

    backend: Literal["rocprof_sys"]
    """RLinf's name of the profiler."""
    args: dict[Line, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """Options of rocprof-sys-python."""
    env: Annotated[dict[Line, JsonValue], Hidden()] = Field(default_factory=dict[str, JsonValue])
    """Variables of the profiled workers."""


PROFILERS: dict[str, type[Profiling]] = {"nsight": Nsight, "rocprof_sys": RocprofSys}
"""RLinf's name to settings."""
