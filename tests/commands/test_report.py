"""The results file of a command.

It becomes a page, and is compared with that of another machine.
"""

import copy
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from repro import __main__
from repro.errors import ReproError
from repro.verify import results
from repro.verify.results import Results
from support.commands import SCRIPTS, script
from support.runs import ROOT

SMALL = ("--out={run}", "--pause=0.02")


def repro(*words: str) -> int:
    return __main__.main([*words])


@pytest.fixture(scope="module")
def verified(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """results.json of a training that does not restore its generator."""
    here = tmp_path_factory.mktemp("verified")
    command = script("generator_not_restored", *SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.delenv("PYTHONHASHSEED", raising=False)
        options = ["--to", "runs", "--ask", "restart,observed,file_order,kill"]
        assert repro("verify", *options, "--resume", shlex.join([*command, "--resume"]), "--", *command) == 3
        assert str(here) not in (here / "runs" / "results.json").read_text()
    return results.read(here / "runs" / "results.json")


def written(verified: Results, path: Path, change: Callable[[Any], object] = lambda _: None) -> Path:
    """The same, changed, in a file."""
    content = copy.deepcopy(verified)
    change(content)
    results.write(path, content)
    return path


def of_another_machine(content: Results) -> None:
    content.machine.cpu.model = "Imaginary 9000"
    content.created = "2026-01-01T00:00:00+00:00"


def of_other_files(content: Results) -> None:
    of_another_machine(content)
    for run in content.runs.values():
        if run.experiment:
            run.experiment["facts"]["scripts"] = {"train.py": "0" * 64}


def of_other_bits(content: Results) -> None:
    of_another_machine(content)
    for run in content.runs.values():
        run.fingerprint = run.fingerprint and "sha256:" + run.fingerprint[:6:-1]
        if run.experiment:
            run.experiment["facts"]["threads"] = 77


def test_what_it_holds(verified: Results) -> None:
    answers = {answer.question: answer for answer in verified.answers}
    assert {name: answer.answer for name, answer in answers.items()} == {
        "restart": "same",
        "observed": "same",
        "file_order": "cannot tell",
        "kill": "differs",
    }
    kill = answers["kill"]
    assert (kill.promise, kill.kept, kill.evidence, kill.control) == ("same", False, "record", False)
    assert kill.difference and kill.difference.channel == "batch"
    assert (kill.difference.step or 0) >= 9  # later, on a busy machine
    assert "old batches come again" in str(kill.says)
    assert [verified.runs[name].label for name in kill.runs] == ["as it stands", "killed, resumed"]
    assert verified.runs[kill.runs[1]].command.endswith(" --resume")
    assert verified.runs["command/not-observed"].fingerprint is None


def test_a_page(verified: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "repro-records" / "verify-1").mkdir(parents=True)
    written(verified, tmp_path / "repro-records" / "verify-1" / "results.json")
    assert repro("report") == 0
    page = (tmp_path / "repro-records" / "report" / "report.html").read_text()
    assert "1 of 3 promises broken." in page and "old batches come again" in page
    assert f"{SCRIPTS}/generator_not_restored.py" in page and "inconclusive" in page and "cannot tell" not in page
    assert "1 of 3 promises broken." in capsys.readouterr().out


def test_how_a_difference_grows_where_arrays_were_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = script("momentum_not_saved", "{run}")
    options = ["--keep", "--ask", "kill", "--resume", shlex.join([*command, "--resume"])]
    assert repro("verify", *options, "--", *command) == 3
    (path,) = tmp_path.glob("repro-records/verify-*/results.json")
    (kill,) = results.read(path).answers
    difference = kill.difference
    assert (
        difference
        and (difference.channel, difference.elements, difference.size) == ("weights", 4, 4)
        and (difference.ulps or 0) > 0
    )
    growth = {point.step: point.relative for point in difference.growth}
    assert max(growth) == 12 and (growth[difference.step or 0] or 0) > 0
    assert repro("report") == 0
    assert "How the differences grow" in (tmp_path / "repro-records" / "report" / "report.html").read_text()


def test_no_folder_of_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert repro("report") == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "answer", "said"),
    [
        (of_another_machine, "same", "6 of 6 runs are the same on both"),
        (of_other_bits, "differs", "threads"),
        (of_other_files, "not asked", "the files that the command names are not the same"),
    ],
)
def test_another_machine(
    change: Callable[[Results], None], answer: str, said: str, verified: Results, tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [written(verified, tmp_path / "a.json"), written(verified, tmp_path / "b.json", change)]
    assert repro("report", "--workspace=.", *map(str, files)) == 0
    capsys.readouterr()
    (block,) = json.loads((tmp_path / "report" / "report.json").read_text())["across"]
    cell = block["rows"][0]["cells"]["command"]
    assert (cell["answer"], cell["promise"]) == (answer, None)
    assert said in cell["says"]


def put(content: Results, **fields: Any) -> None:
    """Changes the second baseline run."""
    content.runs["command/again"] = structs.replace(content.runs["command/again"], **fields)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda content: put(content, fingerprint="sha256:" + "0" * 64), "does not follow"),
        (lambda content: put(content, experiment={"facts": {}}), "missing required field `versions` - at `$.facts`"),
        (lambda content: put(content, task="jax"), "the experiment of another kind of run"),
        (lambda content: put(content, status="failed"), "is failed, with the fingerprint"),
        (lambda content: setattr(content.answers[0], "says", 7), "got `int` - at `$.answers[0].says`"),
    ],
)
def test_what_cannot_be_believed(
    change: Callable[[Results], object], said: str, verified: Results, tmp_path: Path
) -> None:
    with pytest.raises(ReproError) as caught:
        written(verified, tmp_path / "a.json", change)
    assert said in str(caught.value)


def test_a_badge_beside_the_page(verified: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ours, badge = written(verified, tmp_path / "results.json"), tmp_path / "badge.svg"
    assert repro("report", "--badge", str(badge), str(ours)) == 0
    assert "<title>reproducible | level 1 · again</title>" in badge.read_text()
    said = capsys.readouterr()
    assert said.err.endswith(f"badge in {badge}\n")
    assert "Level 1 of 6: again. Not level 2, resumed and killed (differs: kill)" in " ".join(said.out.split())


def test_where_no_badge_can_be(verified: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    ours = written(verified, tmp_path / "results.json")
    for badge in (tmp_path, tmp_path / "none" / "badge.svg"):
        assert repro("report", "--badge", str(badge), str(ours)) == 2
        assert f"--badge {badge}: cannot be written; name a file in a folder that exists" in capsys.readouterr().err
    assert repro("report", "--badge", str(tmp_path / "badge.svg"), str(tmp_path)) == 2
    assert "a sweep has no level; name a results.json" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["results.json"]
