"""`repro verify --alone`: a training of a sweep beside the same one alone."""

import json
import shlex
from pathlib import Path

import pytest

from repro import __main__
from support.observed import interpreter
from support.runs import PROGRAMS, some

FOLDER = PROGRAMS / "sweeps"
FRAMEWORKS = ("pytorch", "tensorflow", "jax")


def answer(framework: str, *words: str, rates: str, options: str = "") -> tuple[int, str, str]:
    """The exit code, the answer to `alone` and the reason; `rates` are those of the sweep, the one alone has the last."""
    python = str(interpreter(framework))
    script = shlex.join([python, str(FOLDER / f"sweep_{framework.replace('tensorflow', 'keras')}.py")])
    alone = f"{script} {options} --rates {rates.split()[-1]}"
    sweep = shlex.split(f"{script} {options} --rates {rates}")
    code = __main__.main(["verify", "--ask", "alone", "--json", "answers.json", *words, "--alone", alone, "--", *sweep])
    (result,) = json.loads(Path("answers.json").read_text())["answers"]
    return code, result["answer"], result["why"]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch", deep=FRAMEWORKS[1:]))
def test_a_training_that_nothing_leaks_into(framework: str) -> None:
    code, said, why = answer(framework, rates="0.1 0.05 0.01")
    assert (code, said) == (0, "same")
    logged = "; metrics: 1 (2 values)" if framework == "tensorflow" else ""  # Keras' fit
    assert why.startswith("training 2 of 3, steps ") and why.endswith(f"is the one alone{logged}")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("framework", "leak", "named"),
    [
        ("pytorch", "generator", "`torch` differs at its first step"),
        ("pytorch", "data", "so the data, or an iterator, is as an earlier training left it"),
        ("pytorch", "model", "it starts from the weights that training 0 ended with"),
        ("pytorch", "setting", "`group 0.weight_decay` is 0.5, alone 0.25"),
        ("tensorflow", "generator", "seed_generator_1/seed_generator_state`, `python` differs at its first step"),
        ("jax", "generator", "a key that went on"),
    ],
)
def test_what_a_training_leaves_to_the_next_is_named(framework: str, leak: str, named: str) -> None:
    code, said, why = answer(framework, rates="0.1 0.01", options=f"--leak {leak}")
    assert (code, said) == (3, "differs") and named in why


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trial", "1"], "verify: --trial 1: goes with --alone"),
        (["--trial", "-1", "--alone", "python x.py"], "verify: --trial -1: must be 0 or more"),
        (["--alone", "python '"], 'verify: --alone "python \'": No closing quotation'),
    ],
)
def test_options_that_cannot_be_meant(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["verify", *words, "--", "true"]) == 2
    assert said in capsys.readouterr().err
