"""What a step computes on its way, for `compare --narrow`: the same in all frameworks, and the step's own."""

from pathlib import Path

import numpy as np
import pytest

from repro.trainers.loop import checkpoint, trace
from support.runs import CUT, Run, fingerprint, needs, some

pytestmark = pytest.mark.spread


@pytest.mark.parametrize("keys", some([(), (CUT,)], ()))
@pytest.mark.parametrize("framework", some(["tensorflow", "jax"], "jax"))
def test_a_step_computes_the_same_on_its_way(framework: str, keys: tuple[str, ...], run: Run, workspace: Path) -> None:
    keys += ("params.trace_steps=1", "params.trace_operations=true", "params.threads=3", "params.max_steps=1")
    seen = {}
    for one in ("pytorch", framework):
        needs(one)
        fingerprint(run(one, *keys))
        (folder,) = (workspace / "outputs" / one).iterdir()
        seen[one] = trace.operations(folder, trace.read(folder), 1)
    assert sum(name.startswith("gradient of") for name in seen["pytorch"]) == 15
    for name, array in seen["pytorch"].items():
        np.testing.assert_allclose(seen[framework][name], array, rtol=1e-3, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("batch_size", some([32, 128], 32))
@pytest.mark.parametrize("framework", some(["tensorflow", "jax"], "jax"))
def test_what_is_found_on_the_way_is_what_threads_found(
    framework: str, run: Run, workspace: Path, batch_size: int
) -> None:
    keys = (f"params.batch_size_train={batch_size}", "params.max_steps=1")
    fingerprint(run(framework, *keys, "params.trace_steps=1", "params.trace_operations=true"))
    (folder,) = (workspace / "outputs" / framework).iterdir()
    recorded = trace.read(folder)
    seen, state = trace.operations(folder, recorded, 1), checkpoint.load(recorded.states[1]).state
    for name, array in state.items():
        if name.startswith("momentum/"):  # the first step's is its gradient
            result = seen[f"gradient of {name.removeprefix('momentum/')}"]
            if (framework, name) == ("tensorflow", "momentum/conv1.bias"):
                # XLA adds it up in another order where what it adds is asked for, too.
                np.testing.assert_allclose(result, array, rtol=1e-5, atol=1e-8)
            else:
                assert (result == array).all(), name


@pytest.mark.slow
def test_looking_into_a_last_batch_that_threads_do_not_share(run: Run) -> None:
    keys = ("params.numerics=portable", "params.batch_size_train=48", "data.train_samples=112", "params.n_epochs=1")
    traced = run("jax", *keys, "params.trace_steps=1", "params.trace_operations=true", "params.resume=never")
    assert fingerprint(traced) == fingerprint(run("jax", *keys, "params.resume=never"))
