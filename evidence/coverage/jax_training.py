"""Trainings of JAX's programs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp

from evidence.coverage.inputs import images, integers, normal, tokens
from evidence.coverage.registry import STEPS

__all__ = ["Training", "images", "integers", "normal", "tokens"]

Step = Callable[..., tuple[Any, Any]]
"""A step, of the state and of a batch: the new state, and the loss."""


def prepare(threads: int, device: str | None) -> None:
    """JAX's threads are those of PJRT_NPROC; it has computed nothing yet, so that the mode can be switched on."""
    if device is not None:
        jax.config.update("jax_default_device", device)


def enable(kernels: bool) -> None:
    """Switches portable numerics on."""
    from repro.portable import kernels as compiled

    compiled.available = compiled.available and kernels
    import repro.portable.jax as portable

    portable.enable()


def seed() -> None:
    """JAX has no generator but a program's keys."""


@dataclass
class Training:
    """A state of nested arrays, and the step that makes the next one."""

    state: Any
    step: Step
    batches: Sequence[Any]
    """They take turns."""
    compiled: bool = True
    losses: list[float] = field(default_factory=list)

    def run(self, steps: int = STEPS) -> Any:
        """The state after a number of steps."""
        step = jax.jit(self.step) if self.compiled else self.step
        state = self.state
        for number in range(steps):
            state, loss = step(state, self.batches[number % len(self.batches)])
            self.losses.append(float(loss))
        return state


def arrays(state: Any) -> dict[str, np.ndarray]:
    """Nested arrays by their path; numbers of Python, too."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path): _array(leaf) for path, leaf in leaves}


def _array(leaf: Any) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    array = np.asarray(leaf)
    return array.view(np.int16) if array.dtype == jnp.bfloat16 else array
