"""What a step computes on its way, for `compare --narrow`: the same in all frameworks, and the step's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from repro.trainers.loop import checkpoint, trace
from support.runs import CUT, Run, fingerprint, needs, some

pytestmark = pytest.mark.spread


def inspected(framework: str, run: Run, workspace: Path, *keys: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a first step computes on its way, and its gradients as threads computed them: the momenta after it."""
    fingerprint(run(framework, *keys, "params.max_steps=1", "params.trace_steps=1", "params.trace_operations=true"))
    (folder,) = (workspace / "outputs" / framework).iterdir()
    recorded = trace.read(folder)
    state = checkpoint.load(recorded.states[1]).state
    momenta = {name.removeprefix("momentum/"): array for name, array in state.items() if name.startswith("momentum/")}
    return trace.operations(folder, recorded, 1), momenta


@pytest.mark.parametrize("keys", some([(), (CUT,)], ()))
@pytest.mark.parametrize("framework", some(["tensorflow", "jax"], deep=["jax"]))
def test_a_step_computes_the_same_on_its_way(framework: str, keys: tuple[str, ...], run: Run, workspace: Path) -> None:
    seen, momenta = {}, {}
    for one in ("pytorch", framework):
        needs(one)
        seen[one], momenta[one] = inspected(one, run, workspace, *keys, "params.threads=3")
    assert sum(name.startswith("gradient of") for name in seen["pytorch"]) == 15
    for name, array in seen["pytorch"].items():
        np.testing.assert_allclose(seen[framework][name], array, rtol=1e-3, atol=1e-6, err_msg=name)
    assert len(momenta[framework]) == 8
    assert_same_gradients(framework, seen[framework], momenta[framework])


def assert_same_gradients(framework: str, seen: dict[str, Any], momenta: dict[str, Any]) -> None:
    for name, array in momenta.items():
        if (framework, name) == ("tensorflow", "conv1.bias"):
            # XLA adds it up in another order where what it adds is asked for, too.
            np.testing.assert_allclose(seen[f"gradient of {name}"], array, rtol=1e-5, atol=1e-8)
        else:
            assert (seen[f"gradient of {name}"] == array).all(), name


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [32, 128])
@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_what_is_computed_on_the_way_is_what_threads_compute(
    framework: str, run: Run, workspace: Path, batch_size: int
) -> None:
    assert_same_gradients(framework, *inspected(framework, run, workspace, f"params.batch_size_train={batch_size}"))


@pytest.mark.slow
def test_looking_into_a_last_batch_that_threads_do_not_share(run: Run) -> None:
    keys = ("params.numerics=portable", "params.batch_size_train=48", "data.train_samples=112", "params.n_epochs=1")
    traced = run("jax", *keys, "params.trace_steps=1", "params.trace_operations=true", "params.resume=never")
    assert fingerprint(traced) == fingerprint(run("jax", *keys, "params.resume=never"))
