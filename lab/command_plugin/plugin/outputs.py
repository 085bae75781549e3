"""Which outputs are unknown in a preview, and which are secret.

The inputs come back as they were. Of what the resource adds (`stdout`, `stderr`, …) everything is unknown in the
preview of a creation, and in the preview of an update as soon as any known input changed. Nothing it adds is secret
by itself: a secret that a command prints is stored in the clear, unless `additionalSecretOutputs` says otherwise.
"""

from __future__ import annotations

from lab.plugin_kit.values import Properties, equal, is_unknown, mark

from .shapes import Shape


def previewed(state: Properties, inputs: Properties) -> Properties:
    """The outputs of a resource about to be created."""
    return {
        key: value if is_unknown(value) or (key in inputs and equal(inputs[key], value)) else mark(value, known=False)
        for key, value in state.items()
    }


def previewed_update(state: Properties, inputs: Properties, old: Properties, shape: Shape) -> Properties:
    """The outputs of a resource about to be updated from the state `old`."""
    changed = any(
        is_unknown(inputs.get(name)) or (name in old and not equal(inputs.get(name), old[name]))
        for name in shape.by_name
    )
    return previewed(state, inputs) if changed else dict(state)
