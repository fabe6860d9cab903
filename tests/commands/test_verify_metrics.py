"""`repro verify` of evaluations: is the score the same?"""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from repro import __main__
from support.observed import interpreter
from support.runs import PROGRAMS, ROOT

FOLDER = PROGRAMS / "metrics"
BATCH = ("--vary", "batch=--batch-size={}:1,7")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "PYTHONHASHSEED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    return tmp_path


def verify(*words: str) -> tuple[int, dict[str, Any]]:
    """`repro verify WORDS` in this process: the exit code, and the answers by question."""
    code = __main__.main(["verify", "--json", "answers.json", *words])
    answers = json.loads(Path("answers.json").read_text())["answers"]
    return code, {answer["question"]: answer for answer in answers}


def evaluate(*options: str) -> list[str]:
    return ["--", sys.executable, str(FOLDER / "evaluate.py"), *options]


def test_a_score_that_is_the_same_though_times_differ() -> None:
    code, answers = verify("--ask", "restart,observed,hash_seed,environment,threads", *evaluate())
    assert code == 4  # only the text on stdout could say whether the observer changes anything, and it holds a time
    assert {name: answer["answer"] for name, answer in answers.items()} == {
        "restart": "same",
        "observed": "cannot tell",
        "hash_seed": "same",
        "environment": "same",
        "threads": "same",
    }
    assert answers["restart"]["why"] == "2 runs, no step, metrics: 2 (7 values)"


def test_a_score_that_differs_by_threads_in_the_seventh_digit(capfd: pytest.CaptureFixture[str]) -> None:
    code, answers = verify("--ask", "restart,threads", *evaluate("--by=threads"))
    assert (code, answers["restart"]["answer"], answers["threads"]["answer"]) == (0, "same", "differs")
    assert answers["threads"]["first"] == {"step": None, "channel": "metrics", "name": "loss", "at": "batch 0"}
    assert "`loss` (stdout) at batch 0: 0.0625 and 0.0625001" in answers["threads"]["why"]
    assert "batch 0, metrics: loss" in capfd.readouterr().out


def test_a_score_by_chance_makes_the_rest_inconclusive() -> None:
    code, answers = verify("--ask", "restart,threads", *evaluate("--by=chance"))
    assert (code, answers["restart"]["answer"], answers["threads"]["answer"]) == (3, "differs", "cannot tell")
    assert answers["restart"]["first"]["name"] == "loss"
    assert "seed" in answers["restart"]["why"]


def test_a_time_under_another_name_is_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    code, answers = verify("--ask", "restart,hash_seed", *evaluate("--by=time"))
    assert (code, answers["restart"]["answer"], answers["hash_seed"]["answer"]) == (0, "same", "same")
    assert "a metric differs from run to run: `mean` (stdout)" in " ".join(capfd.readouterr().out.split())


def test_other_batches_change_nothing() -> None:
    code, answers = verify("--ask", "restart,batch", *BATCH, *evaluate("--out={run}"))
    assert (code, answers["batch"]["answer"], answers["batch"]["promised"]) == (0, "same", None)
    assert answers["batch"]["why"] == (
        "3 runs, up to order: metrics: 1, 24 rows of `{run}/predictions.jsonl`; steps are not compared; "
        "not compared, as the number of values is another one: `loss`"
    )


def test_other_batches_change_the_score_and_the_rows() -> None:
    code, answers = verify("--ask", "batch", *BATCH, *evaluate("--out={run}", "--by=batch"))
    assert (code, answers["batch"]["answer"]) == (0, "differs")
    assert answers["batch"]["why"] == (
        "batch 1: --batch-size=1: only this option was changed; `val_loss` (stdout) at epoch 3: 0.479167067 and 0.479166767, as sums in another order give (a guess); "
        "24 of 24 rows of `{run}/predictions.jsonl` differ"
    )


def test_batch_needs_an_option(capfd: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["verify", "--ask", "batch", *evaluate()]) == 2
    assert "--vary 'batch=--batch-size={}:1,7'" in capfd.readouterr().err


def test_an_average_that_begins_anew_does_not_make_resuming_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = [sys.executable, str(FOLDER / "train.py"), "{run}"]
    code, answers = verify("--ask", "restart,kill", "--resume", shlex.join([*command, "--resume"]), "--", *command)
    assert (code, answers["restart"]["answer"], answers["kill"]["answer"]) == (0, "same", "same")
    assert "all steps are equal, but a metric differs: `loss` (stdout) at step" in answers["kill"]["why"]
    assert "it may be averaged since the start of a run" in answers["kill"]["why"]


@pytest.mark.parametrize(
    ("framework", "program", "names"),
    [("pytorch", "evaluate_pytorch", 3), ("tensorflow", "evaluate_keras", 4), ("jax", "evaluate_jax", 2)],
)
def test_an_evaluation_of_a_framework(framework: str, program: str, names: int) -> None:
    code, answers = verify("--ask", "restart", "--", interpreter(framework), str(FOLDER / f"{program}.py"))
    assert (code, answers["restart"]["answer"]) == (0, "same")
    assert answers["restart"]["why"] == f"2 runs, no step, metrics: {names}"


def test_a_sum_that_threads_split_in_pytorch() -> None:
    command = [interpreter("pytorch"), str(FOLDER / "evaluate_pytorch.py")]
    _, answers = verify("--ask", "threads", "--", *command)
    assert answers["threads"]["answer"] == "differs"
    assert answers["threads"]["first"]["name"] == "total loss"


def test_a_file_of_times_beside_an_equal_score(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--ask", "restart,threads", "--output", "{run}/time.txt", *evaluate("--out={run}", "--by=time")]
    code, answers = verify(*words)
    assert (code, answers["restart"]["first"]["channel"], answers["threads"]["answer"]) == (3, "outputs", "same")
    assert "all other answers do without it, and rest on metrics" in " ".join(capfd.readouterr().out.split())


def test_what_is_logged_at_any_moment_is_left_out_of_an_answer() -> None:
    code, answers = verify("--ask", "restart,hash_seed", *evaluate("--by=moment"))
    assert (code, answers["hash_seed"]["answer"]) == (0, "same")
    assert answers["hash_seed"]["why"] == "3 runs, no step, metrics: 2 (7 values)"
