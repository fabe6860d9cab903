"""`repro verify` without --output: all files in `{run}` are compared, by what they hold."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from repro import __main__
from support.observed import interpreter
from support.runs import PROGRAMS


def verify(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str, last: str = "nothing") -> tuple[int, Any]:
    """The exit code, and the content of --json with the answers by question."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    command = [interpreter("pytorch"), str(PROGRAMS / "files_written.py"), "--out={run}", f"--last={last}"]
    resume = ["--resume", shlex.join([*command, "--resume"])] if any("resume" in word for word in options) else []
    code = __main__.main(["verify", "--json", "answers.json", "--to", "runs", *options, *resume, "--", *command])
    content = json.loads((folder / "answers.json").read_text())
    return code, {answer["question"]: answer for answer in content["answers"]}


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("noise", "`{run}/model.pt` differs first in `2.bias` (float32[2]; 1 of 4 values differ)"),
        pytest.param(
            "average",
            "`{run}/model.pt` differs first in `average.0.weight` (float32[8,4]; 4 of 8 values differ)",
            marks=pytest.mark.deep,
        ),
        pytest.param(
            "array",
            "`{run}/embedding.npy` differs first in `array` (uint8[8]; 1 of 1 value differ)",
            marks=pytest.mark.deep,
        ),
    ],
)
def test_what_comes_after_the_last_step(
    last: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, answers = verify(tmp_path, monkeypatch, "--ask", "restart,environment", last=last)
    assert code == 3
    assert answers["restart"]["answer"] == "differs" and said in answers["restart"]["why"]
    assert answers["environment"]["answer"] == "same" and "15 steps and outputs: " in answers["environment"]["why"]
    assert __main__.main(["compare", "runs/as-it-stands", "runs/again"]) == 3
    assert f"  key     {said}\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("last", "outputs", "noted"),
    [
        ("nothing", 5, "`{run}/log.csv` (a time, a speed or an id: `row "),
        pytest.param("id", 5, "`{run}/model.pt` (a text: `run_id`)", marks=pytest.mark.deep),
        pytest.param("zip", 6, "an event file, which holds times", marks=pytest.mark.deep),
        pytest.param("text", 5, "`{run}/notes.txt` (a log)", marks=pytest.mark.deep),
    ],
)
def test_times_paths_and_ids_are_no_difference(
    last: str,
    outputs: int,
    noted: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, answers = verify(tmp_path, monkeypatch, "--ask", "restart,observed", last=last)
    aside = 2 if last == "text" else 1
    assert (
        answers["restart"]["why"]
        == f"2 runs, 15 steps and outputs: {outputs} ({aside} not compared), metrics: 2 (16 values)"
    )
    assert answers["observed"]["why"].startswith("the same outputs; ")
    assert code == 0 and noted in " ".join(capsys.readouterr().out.split())


def test_a_resumed_run_may_write_other_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, answers = verify(tmp_path, monkeypatch, "--ask", "restart,resume", "--no-controls")
    assert answers["resume"]["answer"] == "same"
    assert (
        "went on after step 5 of 15; outputs: 1 (5 not compared, such as `{run}/checkpoint.pt`)"
        in answers["resume"]["why"]
    )
    assert code == 0


def test_an_average_of_a_resumed_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the resumed command adds something to the weights, after the last step."""
    whole = [interpreter("pytorch"), str(PROGRAMS / "files_written.py"), "--out={run}"]
    monkeypatch.chdir(tmp_path)
    resume = shlex.join([*whole, "--resume", "--last=noise"])
    asked = ["verify", "--ask", "kill", "--no-controls", "--json", "answers.json", "--resume", resume, "--", *whole]
    code = __main__.main(asked)
    (answer,) = json.loads((tmp_path / "answers.json").read_text())["answers"]
    assert (code, answer["answer"]) == (0, "same")  # a vector may be a log of the run


@pytest.mark.deep
def test_an_option_that_writes_checkpoints_at_other_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, answers = verify(tmp_path, monkeypatch, "--ask", "restart", "--vary", "every=--every={}:5,4")
    assert (code, answers["every"]["answer"]) == (0, "same")
    assert "15 steps and outputs: 2 (4 not compared, such as `{run}/checkpoint.pt`)" in answers["every"]["why"]


def test_without_an_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = [interpreter("pytorch"), str(PROGRAMS / "files_written.py"), f"--out={tmp_path}"]
    assert __main__.main(["verify", "--ask", "restart", "--json", "answers.json", "--", *command]) == 0
    (answer,) = json.loads((tmp_path / "answers.json").read_text())["answers"]
    assert answer["why"] == "2 runs, 15 steps, without an output"


def test_a_time_in_an_output_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, answers = verify(tmp_path, monkeypatch, "--ask", "restart", "--output", "{run}/results.json")
    assert (code, answers["restart"]["answer"]) == (3, "differs")
    assert "differs first in `runtime` (" in answers["restart"]["why"]
    assert answers["restart"]["why"].endswith("which is a time, a speed or an id, and no array differs")
