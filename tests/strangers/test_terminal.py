"""No character of a stranger's that a terminal would obey is printed, nor a line that looks like one of ours."""

import io
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.table import Table
from rich.text import Text
from safetensors.numpy import load, save

from repro import __main__
from repro.console import Screen, log_to_console
from repro.errors import ReproError
from repro.trainers.loop import checkpoint
from support import mutations
from support.readers import READERS, STATE, Reader

EVIL = "\x1b]0;owned\x07\x9b2J\u202e\nsame: all that both records hold is equal"
SHOWN = "owned"


def reader(name: str) -> Reader:
    return next(one for one in READERS if one.name == name)


def a_file_in_steps(folder: Path) -> None:
    (folder / "a" / "steps" / f"{EVIL}.jsonl").write_text("{\n")


def in_json(file: str, change: Callable[[Any], object], seal: bool = False) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        change(content)
        (folder / file).write_text(json.dumps(mutations.sealed(content) if seal else content))

    return write


def a_run_of_that_name(content: Any) -> None:
    content["runs"][EVIL] = next(iter(content["runs"].values())) | {"status": "failed"}


def a_format(folder: Path) -> None:
    path = folder / "model" / STATE
    path.write_bytes(save(load(path.read_bytes()), metadata={checkpoint.KEY: json.dumps({"format": EVIL})}))


WRITTEN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "the name of a file": ("steps", a_file_in_steps),
    "a note": ("record", in_json("a/record.json", lambda content: content.update(notes=[EVIL], schema=EVIL))),
    "a fact": ("steps", in_json("a/record.json", lambda content: content["facts"].update(threads=EVIL))),
    "a run": ("results", in_json("results.json", a_run_of_that_name, seal=True)),
    "a question": (
        "results",
        in_json("results.json", lambda c: c["answers"][0].update(question=EVIL, kept=False), True),
    ),
    "a cell": ("benchmark", in_json("benchmark.json", lambda c: c["rows"][0].update(cell=EVIL), True)),
    "a seed": (
        "experiment",
        in_json("outputs/jax/a/experiment.json", lambda c: c["config"]["params"].update(seed=EVIL)),
    ),
    "a data set": (
        "experiment",
        in_json("outputs/jax/a/experiment.json", lambda c: c["config"]["data"].update(dataset=EVIL)),
    ),
    "a format": ("checkpoint", a_format),
    "a log": ("sweep's log", lambda folder: (folder / "1" / "run.log").write_text(EVIL.split("\n")[0])),
}


@pytest.mark.parametrize("what", WRITTEN)
def test_what_is_printed(what: str, tmp_path: Path) -> None:
    name, write = WRITTEN[what]
    reader(name).make(tmp_path)
    write(tmp_path)
    text = reader(name)(tmp_path).text
    assert SHOWN in text
    assert all(line.isprintable() for line in text.splitlines()) and not any(
        line.startswith("same") for line in text.splitlines()
    )


def test_log_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    log_to_console()
    logging.getLogger("x").info("of %s", EVIL)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.isprintable() and SHOWN in line


@pytest.mark.parametrize("terminal", [True, False])
def test_tables_keep_their_own_colours(terminal: bool) -> None:
    file = io.StringIO()
    table = Table(title=Text(EVIL))
    table.add_row(Text(EVIL, "red"))
    colours: Any = "standard" if terminal else None
    Screen(file=file, width=200, force_terminal=terminal, color_system=colours).print(table, Text(EVIL))
    text = file.getvalue()
    assert ("\x1b[31m" in text) == terminal and text.count(SHOWN) == 3
    assert not {"\x1b]", "\x07", "\x9b", "\u202e"} & {text[i : i + n] for i in range(len(text)) for n in (1, 2)}


def test_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__._trace(ReproError(EVIL)) == 1
    text = capsys.readouterr().err
    assert SHOWN in text and all(line.isprintable() for line in text.splitlines())
