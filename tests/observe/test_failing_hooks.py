"""An observer that fails: the step is reported, later ones are seen, and nothing is called the same."""

from itertools import pairwise
from pathlib import Path

import pytest

from repro import __main__
from repro.errors import INCONCLUSIVE
from repro.record import record
from repro.record.recording import Recording
from support.observed import HERE, SCRIPTS, ended, interpreter, start
from support.runs import some

ENVIRONMENTS = {
    "pytorch_loops": "pytorch",
    **dict.fromkeys(["jax_loops", "jax_by_hand", "jax_ways"], "jax"),
    "keras_loops": "tensorflow",
}
HOOKS = {
    "watch": {"watched._write": "watch"},
    "pytorch_loops": dict.fromkeys(
        ["pytorch.before", "pytorch.after", "batches.add", "pytorch.before_backward", "hashing.hash_leaf"], "adamw"
    ),
    "jax_loops": {
        "jax._observe_step": "eager",
        "jax._record": "linen",
        "jax._state_of_train_state": "linen",
        "jax._state_of_module": "nnx",
        "jax._if_first": "sharded",
    },
    "keras_loops": {
        "keras_fit.before_batch": "fit, eager",
        "keras_fit._watch_train_step": "fit, own step",
        "keras.before": "fit, eager",
        "keras.after": "fit, eager",
        "keras._record": "fit, eager",
        "keras_fit.after_batch": "fit, XLA",
        "tf_data._add": "own, tf.data",
    },
    "jax_by_hand": {
        "calls._before": "update",
        "calls._after": "update",
        "calls._end": "gradients",
        "traces._end": "update",
        "traces._differentiate": "update",
        "nnx_calls._before": "nnx",
        "nnx_calls._after": "nnx",
    },
    "jax_ways": {
        "compiled._calls_of": "ahead",
        "compiled._remember": "ahead",
        "compiled._static": "bound",
        "compiled._gradient": "eager",
    },
    "fits": {"estimators.before": "fits", "estimators.after": "fits"},
    "rounds": {"boosting.remember": "rounds", "boosting.before": "rounds", "boosting.after": "rounds"},
}
"""By program, each hook of its framework, and a training that calls it."""
DEEP = {"jax_loops", "jax_by_hand", "jax_ways", "keras_loops"}
OTHERS = (
    *("operations.", "generators.", "metrics.", "equinox_calls."),
    *("jax_modules.", "jax_passes.", "doubles.", "tensorflow_doubles."),
)
"""Files whose hooks only some trainings have, or an environment that is not installed, or runs with `--modules` alone."""
COUNTING = {"pytorch.after", "jax._record", "jax._if_first", "jax._observe_step", "keras.before", "keras.after"}
COUNTING |= {"keras._record", "keras_fit.after_batch", "watched._write"}
COUNTING |= {
    "calls._before",
    "calls._after",
    "compiled._calls_of",
    "compiled._gradient",
    "nnx_calls._before",
    "nnx_calls._after",
    "estimators.before",
    "estimators.after",
    "boosting.before",
    "boosting.after",
}
"""Those that count steps: where they fail before that, the next step has the number of this one."""


@pytest.mark.parametrize("program", some(HOOKS, *(HOOKS.keys() - DEEP), deep=DEEP))
def test_no_answer_is_same_where_a_hook_failed(program: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    hooks = HOOKS[program]
    recordings = [Recording(["true"], tmp_path / name) for name in {*hooks, *hooks.values()}]
    python = interpreter(ENVIRONMENTS[program]) if program in ENVIRONMENTS else HERE
    pairs = [f"{scenario}:{hook}" for hook, scenario in hooks.items()]
    command = [python, str(SCRIPTS / "failing_hooks.py"), str(tmp_path), program, *pairs]
    ended(start(command, tmp_path / "own", XLA_FLAGS="--xla_force_host_platform_device_count=2"))
    for recording in recordings:
        recording.finish(0)
    for hook, scenario in hooks.items():
        whole, partial = tmp_path / scenario, tmp_path / hook
        assert compared(capfd, whole, whole)[0] == 0
        code, told = compared(capfd, partial, partial)
        assert code == INCONCLUSIVE and "inconclusive: " in told and "planted" in told
        code, told = compared(capfd, whole, partial)
        assert code == INCONCLUSIVE or (hook in COUNTING and code), told
        assert record.read(partial).steps >= record.read(whole).steps - 1


def compared(capfd: pytest.CaptureFixture[str], *records: Path) -> tuple[int, str]:
    code = __main__.main(["compare", *map(str, records)])
    return code, " ".join(capfd.readouterr())


def test_each_hook_is_among_those_that_fail() -> None:
    """A function that the observer guards is one that a program comes to call."""
    folder = Path(record.__file__).parents[1] / "observe"
    guarded = set()
    for file in folder.glob("*.py"):
        lines = file.read_text().splitlines()
        for line, following in pairwise(lines):
            if line.strip() == "@recorder.never_raise":
                guarded.add(f"{file.stem}.{following.split('(')[0].strip().removeprefix('def ')}")
    tried = {hook for hooks in HOOKS.values() for hook in hooks}
    assert {hook for hook in guarded - tried if not hook.startswith(OTHERS)} == set()
