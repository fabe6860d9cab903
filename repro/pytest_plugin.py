"""The pytest fixture `assert_reproducible`.

`assert_reproducible("python train.py")` asks `repro verify`, and fails where bits differ. pytest loads this file at each of its starts, wherever the package is installed: it imports what pytest has loaded
already, and no more. The questions are asked by a process of its own, as from a shell.
"""

import json
import shlex
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

import pytest

ALWAYS = ("restart", "observed", "hash_seed")
# As the command `repro`, of this very package, with nothing of it on the path of what is asked about.
START = (
    "import sys; package = sys.argv.pop(1); package in sys.path or sys.path.insert(0, package); "
    "from repro.__main__ import command; command()"
)
PACKAGE = str(Path(__file__).parents[1])
GRACE = 60.0  # seconds for an interrupted run to end all that it has started

NEEDS = {"resume": "resume", "kill": "resume", "resume_twice": "resume", "seed": "seed_option"}  # by question

Words = str | Sequence[str]


class AssertReproducible(Protocol):
    """The type of the fixture, which documents the arguments."""

    def __call__(
        self,
        command: Words,
        *,
        ask: Words | None = None,
        resume: Words | None = None,
        seed_option: str | None = None,
        vary: Sequence[str] = (),
        outputs: Words = (),
        every: int = 1,
    ) -> dict[str, Any]: ...


@pytest.fixture
def assert_reproducible(tmp_path: Path) -> AssertReproducible:
    """Runs a command several times from the current folder, as `repro verify` does, and compares.

    `command`: words, or one text as for a shell, though no shell reads it. `ask`: the questions; without, `restart`,
    `observed` and `hash_seed`, with `resume` also `kill`, with `seed_option` also `seed`. The others are the options of
    `repro verify`, `outputs` being one pattern or several, and `vary` one text for each option. The records are left in
    tmp_path. Returns the answers, as `--json` writes them.

    AssertionError that names the cause if an answer is not as it should be. ReproError if the command fails, or
    reproducibility is inconclusive. What this machine cannot ask is a warning, as is an observer that could not be
    checked.
    """

    def check(
        command: Words,
        *,
        ask: Words | None = None,
        resume: Words | None = None,
        seed_option: str | None = None,
        vary: Sequence[str] = (),
        outputs: Words = (),
        every: int = 1,
    ) -> dict[str, Any]:
        __tracebackhide__ = True
        asked = _several(ask or (*ALWAYS, *["kill"] * (resume is not None), *["seed"] * (seed_option is not None)))
        _check_given(asked, resume=resume, seed_option=seed_option)
        records = tmp_path / "repro-records"
        records.mkdir(exist_ok=True)
        to = records / str(len([*records.glob("*.json")]) + 1)
        options = ["--to", str(to), "--json", f"{to}.json", "--ask", ",".join(asked), "--every", str(every)]
        options += [] if resume is None else ["--resume", resume if isinstance(resume, str) else shlex.join(resume)]
        options += [] if seed_option is None else ["--seed-option", seed_option]
        options += [word for text in vary for word in ("--vary", text)]
        options += [word for pattern in _several(outputs) for word in ("--output", pattern)]
        words = shlex.split(command) if isinstance(command, str) else [*command]
        code, printed, errors = _run([*options, "--", *words])
        sys.stderr.write(errors)  # pytest shows it where the test fails
        file = Path(f"{to}.json")
        if not file.exists():
            _fail(code, errors)
        content: dict[str, Any] = json.loads(file.read_text())
        _judge(content["answers"], code, "\n".join(["", *map(str.rstrip, printed.splitlines())]))
        return content

    return check


def _several(words: Words) -> Sequence[str]:
    return words.split(",") if isinstance(words, str) else words


def _check_given(asked: Sequence[str], **options: object) -> None:
    """Raises UsageError if a question lacks what it needs."""
    __tracebackhide__ = True
    from repro.errors import UsageError

    for question in asked:
        option = NEEDS.get(question)
        if option is not None and options[option] is None:
            raise UsageError(f"assert_reproducible: {question!r} is asked, and needs {option}=")


def _run(words: list[str]) -> tuple[int, str, str]:
    """Runs `repro verify WORDS` to its end: exit code, stdout, stderr. Interrupted, it ends what it has started."""
    command = [sys.executable, "-P", "-c", START, PACKAGE, "verify", *words]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            printed, errors = process.communicate()
        except BaseException:
            process.terminate()
            try:
                process.communicate(timeout=GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
    return process.returncode, printed, errors


def _fail(code: int, errors: str) -> NoReturn:
    """The error of `repro verify`: of the command, or of what was asked."""
    __tracebackhide__ = True
    from repro.errors import ReproError, UsageError

    lines = [line for line in errors.splitlines() if line.startswith("error: ")] or errors.splitlines()[-1:]
    said = lines[-1].removeprefix("error: ") if lines else f"repro verify ended with code {code}, and said nothing"
    raise (UsageError if code == UsageError.exit_code else ReproError)(said)


def _judge(answers: list[dict[str, Any]], code: int, evidence: str) -> None:
    """Raises, or warns, for the answers that are not as they should be."""
    __tracebackhide__ = True
    from repro.errors import INCONCLUSIVE, ReproError

    answered = {"same", "differs"}
    broken = [one for one in answers if one["promised"] in answered and one["answer"] in answered - {one["promised"]}]
    if broken:
        raise AssertionError("not reproducible: " + "; ".join(map(_said, broken)) + evidence)
    unanswered = [one for one in answers if one["answer"] not in answered]
    if code not in (0, INCONCLUSIVE) or any(
        one["answer"] == "cannot tell" and one["question"] != "observed" for one in unanswered
    ):
        raise ReproError("reproducibility is inconclusive: " + "; ".join(map(_said, unanswered)) + evidence)
    for one in unanswered:
        warnings.warn(f"repro: {_said(one)}", pytest.PytestWarning, stacklevel=3)


def _said(answer: dict[str, Any]) -> str:
    """Describes an answer: `restart: differs at step 3, gradients, why`."""
    from repro.verify.questions import shown

    first = answer["first"] or {}
    step = [f"step {first['step']}"] if first.get("step") is not None else []
    where = ", ".join([*step, *(str(first[key]) for key in ("channel", "name") if first.get(key))])
    return f"{answer['question']}: {shown(answer['answer'])}{f' at {where}' if where else ''}: {answer['why']}"
