"""The report's files.

Which results it takes, what it writes and prints, and what it says where it cannot.
"""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs
from rich.console import Console

from repro.errors import ReproError, UsageError
from repro.report import findings, page, report, tables
from repro.report.contents import Report
from repro.report.markdown import escaped
from repro.structs import converted
from repro.verify import results
from repro.verify.results import Cause, FirstDifference, Results
from support.answered import verified
from support.pages import Page
from support.results_files import results as made
from support.results_files import sealed
from support.runs import Run


def leave(folder: Path, content: Results) -> Path:
    """results.json in a folder, as `verify` leaves it."""
    folder.mkdir(parents=True)
    results.write(folder / "results.json", content)
    return folder / "results.json"


def built(*contents: Results) -> Report:
    return findings.build([sealed(content) for content in contents])


def printed(content: Report, **options) -> str:
    console = Console(file=io.StringIO(), width=160, **options)
    tables.show(content, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


# --- which files ----------------------------------------------------------------------------------------------------


def test_all_of_the_workspace_or_those_named(tmp_path: Path):
    first = leave(tmp_path / "verify" / "1", made())
    leave(tmp_path / "verify" / "2", made(model="B"))
    other = leave(tmp_path / "elsewhere", made(model="C"))
    machines = [section.summary.split(",")[0] for section in report.write(tmp_path, []).sections]
    assert machines == ["Imaginary 9000", "B"]
    named = report.write(tmp_path, [str(first), str(other), str(first)])
    assert [section.summary.split(",")[0] for section in named.sections] == ["Imaginary 9000", "C"]
    assert sorted(path.name for path in (tmp_path / "report").iterdir()) == ["report.html", "report.json", "report.md"]
    assert converted(json.loads((tmp_path / "report" / "report.json").read_text()), Report) == named


def test_nothing_to_report(tmp_path: Path):
    said = r"none of verify/\*/results.json, .*, benchmark/\*/benchmark.json in .*; run `verify` or `benchmark` first"
    with pytest.raises(UsageError, match=said):
        report.write(tmp_path, [])
    assert not list(tmp_path.iterdir())


def test_a_bad_file_leaves_the_old_report(tmp_path: Path):
    path = leave(tmp_path / "verify" / "1", made())
    report.write(tmp_path, [])
    before = {path: path.read_bytes() for path in (tmp_path / "report").iterdir()}
    path.write_text(path.read_text().replace("Imaginary", "Real"))
    with pytest.raises(ReproError, match="was changed after it was written"):
        report.write(tmp_path, [])
    assert {path: path.read_bytes() for path in (tmp_path / "report").iterdir()} == before


# --- what it says ---------------------------------------------------------------------------------------------------


def test_verdict():
    one = built(made()).verdict
    assert (one.kept, one.broken, one.without_promise, one.not_asked) == (28, [], 4, 6)
    content = built(made(broken=("deterministic", "jax", "workers")))
    (broken,) = content.verdict.broken
    assert (broken.machine, broken.framework, broken.numerics) == ("A", "jax", "deterministic")
    assert findings.verdict(content).startswith("1 of 28 promises broken. 4 answers without a promise, 6 questions")
    assert findings.verdict(built(made())).startswith("28 of 28 promises kept.")
    alone = structs.replace(content, verdict=structs.replace(one, kept=1, without_promise=1, not_asked=1))
    assert findings.verdict(alone) == "1 of 1 promise kept. 1 answer without a promise, 1 question not answered."
    nothing = made()
    nothing.answers = []
    assert findings.verdict(built(nothing)).startswith("No promise was put to the test.")


def test_a_question_asked_twice_gets_a_second_row():
    content = made()
    content.answers.append(content.answers[0])
    rows = built(content).sections[0].blocks[0].rows
    first, second = [row for row in rows if row.question == "restart_cpu"]
    assert (list(first.cells), list(second.cells)) == (["pytorch", "tensorflow", "jax"], ["pytorch"])


def calls(function: Callable[[], object]) -> int:
    """The number of calls that a function makes, of Python's own, too."""
    count = 0

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(called)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("change", ["question", "title", "framework", "numerics", "runs", "none"])
def test_twice_as_many_answers_take_twice_the_work(change: str):
    def of(number: int) -> int:
        content = made("deterministic")
        answer = content.answers[0]
        if change == "runs":
            run = content.runs["deterministic/pytorch/as-configured"]
            for index in range(number):
                content.runs[str(index)] = structs.replace(run, numerics=str(index))
        changed = [{change: str(index)} if change not in ("none", "runs") else {} for index in range(number)]
        content.answers = [structs.replace(answer, **fields) for fields in changed]
        return calls(lambda: findings.build([content]))

    assert of(800) < 2.2 * of(400)


def test_many_questions_are_cut_in_the_terminal_alone():
    content = made("deterministic")
    content.answers = [content.answers[0]] * (tables.MOST + 7)
    terminal, markdown = printed(built(content)), tables.markdown(built(content))
    assert "and 7 more questions, which the page shows\n" in terminal
    assert markdown.count("same; ✓ as promised") == tables.MOST + 7


@pytest.mark.parametrize("what", ["framework", "numerics"])
def test_more_than_a_table_can_hold_is_refused(what: str, tmp_path: Path):
    content = made("deterministic")
    content.answers = [structs.replace(content.answers[0], **{what: str(index)}) for index in range(60)]
    with pytest.raises(ReproError, match=f"its answers have 60 values of {what}, more than 50; copy it again"):
        results.write(tmp_path / "results.json", content)


def test_answers_that_repeat_a_long_text(tmp_path: Path):
    content = made("deterministic")
    content.runs["deterministic/pytorch/as-configured"].command = "x" * (1 << 20)
    content.answers = [content.answers[0]] * 70
    with pytest.raises(ReproError, match=r"its answers show 7\d+ characters of their runs, more than 67108864"):
        results.write(tmp_path / "results.json", content)


def test_every_answer_stands_in_the_terminal_and_in_markdown():
    contents = [made(broken=("portable", "jax", "workers")), made(model="B")]
    content = built(*contents)
    terminal, markdown = printed(content), tables.markdown(content)
    answers = [answer for content in contents for answer in content.answers]
    across = [cell for block in content.across for row in block.rows for cell in row.cells.values()]
    pairs: list[tuple[str, bool | None]] = [(answer.answer, answer.kept) for answer in answers]
    pairs += [(cell.answer, cell.kept) for cell in across]
    for said, kept in (("same", True), ("differs", True), ("differs", False), ("differs", None), ("same", None)):
        many = pairs.count((said, kept))
        mark = {True: "✓ as promised", False: "✗ promised: same", None: "nothing promised"}[kept]
        assert terminal.count(f"{said}, {mark}") == markdown.count(f"{said}; {mark}") == many
    many = sum(answer.answer == "not asked" for answer in answers)
    assert terminal.count("skipped ") == many and markdown.count("skipped;") == many
    assert "not asked" not in terminal + markdown
    assert "## Machine B, 2026-11-21T14:00:00+00:00, portable\n" in markdown
    assert terminal.splitlines()[-1] == findings.verdict(content)
    assert "| PyTorch | 100 | 3.00 | 6.1 | 88.00 %" in markdown


def test_the_levels_stand_in_the_terminal_in_markdown_and_on_the_page():
    content = built(made(broken=("portable", "jax", "restart_cpu")), made(model="B"))
    terminal, markdown, shown = printed(content), tables.markdown(content), Page(page.html(content)).text
    assert {training.level for training in content.levels} == {0, 1}
    for training in content.levels:
        name = f"{findings.framework_name(training.framework)}, {training.numerics}"
        assert f"{name}: {training.says}\n" in terminal
        assert f"{name} {training.says}" in shown
        assert f"## {escaped(training.says)}\n\n{name}\n" in markdown
    assert markdown.count("| 1 | again | yes | same: restart\\_cpu |") == sum(one.level for one in content.levels)
    (broken,) = [one for one in content.levels if not one.level]
    assert "| 1 | again | no | differs: restart\\_cpu |" in markdown and broken.framework == "jax"
    assert " ".join(shown.split()).count("same ✓ reached restart_cpu") == sum(one.level for one in content.levels)


def test_a_level_above_a_missing_one_is_said_not_to_be_reached():
    content = built(verified({"restart": "same", "threads": "same", "cores": "same"}))
    shown = " ".join(Page(page.html(content)).text.split())
    assert "3. other thread counts same but a level below is not reached threads, cores" in shown
    assert "2. resumed and killed skipped resume, kill" in shown
    assert "commit c0ffee, fingerprint sha256:" in shown and "PyTorch 2.15.0" in shown


def test_a_difference_in_a_line():
    def changed(**fields) -> FirstDifference:
        content = made()
        difference = content.answers[9].difference
        assert difference is not None
        difference.causes = [Cause("x", "sha256:" + "7" * 64, "y" * 30)]
        return structs.replace(difference, **fields)

    def says(difference: FirstDifference) -> str:
        content = made()
        content.answers[9].difference = difference
        rows = built(content).sections[0].blocks[0].rows
        return next(row for row in rows if row.question == "threads").cells["pytorch"].says

    cause = f"; x: 77777777 and {'y' * 19}…"
    assert says(changed()) == f"first seen at step 30 in conv1.kernel, 2 ulp{cause}"
    assert says(changed(ulps=2**31)) == f"first seen at step 30 in conv1.kernel, 6e-08 relative{cause}"
    assert says(changed(ulps=None, relative=None)) == f"first seen at step 30 in conv1.kernel{cause}"
    assert says(changed(tensor=None, causes=[])) == "first seen at step 30, 2 ulp"
    assert says(changed(tensor=None, causes=[], ranks=[1, 2])) == "first seen at step 30 in ranks 1, 2, 2 ulp"


def test_colours_only_on_a_terminal():
    assert "\x1b[" not in printed(built(made()))
    assert "\x1b[32m" in printed(built(made()), force_terminal=True, color_system="standard")


def test_what_a_stranger_wrote_commands_nothing():
    content = made()
    content.answers[0].title = "[red]x[/red] \x1b[2J\u202e|y|\n# <b>z</b>"
    terminal, markdown = printed(built(content)), tables.markdown(built(content))
    assert "[red]x[/red]" in terminal and "\x1b" not in terminal and "\u202e" not in terminal
    assert r"| \[red\]x\[/red\]  \[2J \|y\| # \<b\>z\</b\> |" in markdown


# --- as a user calls it ---------------------------------------------------------------------------------------------


def test_the_task(run: Run, tmp_path: Path):
    path = leave(tmp_path / "verify" / "1", made())
    (tmp_path / "train.yaml").write_text("broken: [")
    done = run("report", workspace=tmp_path)
    if "no complete environment" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert "28 of 28 promises kept" in done.stdout and "\x1b[" not in done.stdout
    assert f"{tmp_path}/report/report.html" in done.stderr
    done = run("report", str(path), str(tmp_path / "a=b.json"), workspace=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith(f"error: results: {tmp_path}/a=b.json does not exist")
