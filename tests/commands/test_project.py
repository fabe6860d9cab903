"""[tool.repro] of pyproject.toml: what it stands for, what wins, and what is refused."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from repro.commands import commands, project, verify
from repro.errors import UsageError
from support.commands import repro

COMMAND = 'command = "python train.py --out={run}"'
TRAIN = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1].removeprefix("--out="))
folder.mkdir(exist_ok=True)
(folder / "model.txt").write_text("weights" + pathlib.Path("seed.txt").read_text())
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completed(table: str, *words: str, task: str = "verify", command: list[str] | None = None):
    """The options of words typed where a project has this table."""
    Path("pyproject.toml").write_text(f"[tool.repro]\n{table}\n")
    options = commands.parse([task, *words], command)
    project.complete(options, verify.parser())
    return options


def test_every_option_has_a_key(folder: Path):
    table = [
        'command = ["python", "train.py", "a b"]',
        'resume = "python train.py --resume"',
        'alone = ["python", "train.py", "--trial=1"]',
        'output = ["{run}/a", "{run}/b"]',
        'ask = ["restart", "kill"]',
        "portable = true",
        "no-controls = false",
        "cure = true",
        "keep = true",
        'vary = "workers"',
        "seed-option = '--seed={}'",
        "stops = 3",
        "trial = 1",
        "runs = 9",
        "every = 2",
        'image = "mine"',
        'allow = "linalg_svd"',
        'precision = "highest"',
        "elastic = true",
        'json = "answers.json"',
    ]
    options = vars(completed("\n".join(table)))
    expected = {
        "command": ["python", "train.py", "a b"],
        "resume": "python train.py --resume",
        "alone": "python train.py --trial=1",
        "output": ["{run}/a", "{run}/b"],
        "ask": "restart,kill",
        "portable": True,
        "no_controls": False,
        "cure": True,
        "keep": True,
        "vary": ["workers"],
        "seed_option": "--seed={}",
        "stops": 3,
        "trial": 1,
        "runs": 9,
        "every": 2,
        "image": "mine",
        "allow": ["linalg_svd"],
        "precision": "highest",
        "elastic": True,
        "json": Path("answers.json"),
    }
    assert {name: options[name] for name in expected} == expected
    others = {action.dest for action in verify.parser().named.values()} - {*expected}
    assert others == {*project.NO_KEYS} - {"parameters"}


def test_what_is_typed_wins_also_where_it_is_the_default(folder: Path):
    table = f'{COMMAND}\nevery = 5\noutput = ["a", "b"]\nask = "restart"\nkeep = true'
    options = completed(table, "--every", "1", "--output=c", "--ask", "all")
    assert (options.every, options.output, options.ask, options.keep) == (1, ["c"], "all", True)


def test_with_a_command_of_its_own_it_is_not_read(folder: Path):
    options = completed("evry = 5", command=["python", "other.py"])
    assert (options.command, options.every) == (["python", "other.py"], 1)


def test_record_takes_what_it_has(folder: Path):
    options = completed(f'{COMMAND}\nresume = "x"\nkeep = true\nstops = 2', task="record")
    assert (options.command, options.keep) == (["python", "train.py", "--out={run}"], True)
    assert not hasattr(options, "stops") and options.to is None


REFUSED = [
    ('every = "2"', "has every = '2'; write a whole number, as in: every = 2"),
    ("every = true", "has every = true; write a whole number"),
    ("keep = 1", "has keep = 1; write true or false"),
    ("output = [1]", r"has output = \[1\]; write a text or a list of texts, as in: output = "),
    ('image = ["a", "b"]', "has image = .*; write a text, as in: image = "),
    ("image = 3", "has image = 3; write a text, as in: image = "),
    ("ask = 3", "has ask = 3; write a text or a list of texts"),
    ("resume = 3", "has resume = 3; write a text or a list of texts, as in: resume = "),
    ('resume = "\'"', "has resume = .*; write a command whose quotes are closed"),
    ("evry = 2", "has no key 'evry'; did you mean every"),
    ("qqqqq = 2", "has no key 'qqqqq'; its keys are command, ask, resume, "),
    ('mlcube = "x"', "has no key 'mlcube'; "),
    ('precision = "low"', "argument --precision: invalid choice: 'low'"),
    (f"output = [1, {'1' * 99}]", "has output = .{57}\\.\\.\\.; write"),
]


@pytest.mark.parametrize(("line", "said"), REFUSED)
def test_a_wrong_entry_is_named_with_file_and_remedy(line: str, said: str, folder: Path):
    with pytest.raises(UsageError, match=rf"^verify: {folder}/pyproject\.toml: \[tool\.repro\]:? {said}"):
        completed(f"{COMMAND}\n{line}")


@pytest.mark.parametrize("value", ["[]", "3", '""', '["a", 1]'])
def test_a_wrong_command(value: str, folder: Path):
    with pytest.raises(UsageError, match=r"has command = .*; write a text or a list of texts, as in: command = "):
        completed(f"command = {value}")
    with pytest.raises(UsageError, match=r"\[tool\.repro\] has no command; add one, as in: command = "):
        completed("every = 2")


@pytest.mark.parametrize("text", ["[tool.repro", "tool = {repro = 3}"])
def test_no_table(text: str, folder: Path):
    (folder / "pyproject.toml").write_text(text)
    with pytest.raises(
        UsageError, match=r"pyproject\.toml(: \[tool\.repro\] must be a table| cannot be read .*; correct)"
    ):
        project.complete(commands.parse(["verify"]), verify.parser())


@pytest.mark.parametrize("text", [None, "", "tool = 3", "[tool.ruff]\nline-length = 9"])
def test_without_a_table_a_command_is_asked_for(text: str | None, folder: Path):
    if text is not None:
        (folder / "pyproject.toml").write_text(text)
    done = repro("verify", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("error: verify: no command; put it after --, as in: repro verify -- python train.py")
    assert "[tool.repro] in pyproject.toml" in done.stderr


def test_above_only_a_file_of_the_same_user(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / "below").mkdir()
    (folder / "pyproject.toml").write_text(f"[tool.repro]\n{COMMAND}")
    known = Path.stat

    def of_another(path: Path, **options) -> os.stat_result:
        status = [*known(path, **options)]
        status[4] += path.name == "pyproject.toml"  # the user
        return os.stat_result(status)

    monkeypatch.setattr(Path, "stat", of_another)
    for place, command in ((folder / "below", None), (folder, ["python", "train.py", "--out={run}"])):
        monkeypatch.chdir(place)
        options = commands.parse(["verify"])
        project.complete(options, verify.parser())
        assert options.command == command


def test_verify_and_record_in_a_folder_below(tmp_path: Path):
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "seed.txt").write_text("7")
    below = tmp_path / "below"
    below.mkdir()
    (below / "pyproject.toml").write_text("[tool.ruff]\n")
    words = json.dumps([sys.executable, "train.py", "--out={run}"])
    (tmp_path / "pyproject.toml").write_text(
        f'[tool.repro]\ncommand = {words}\nask = "restart"\noutput = "{{run}}/*"\n'
    )
    done = repro("verify", "--json", "answers.json", cwd=below)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith(
        f"repro: in {tmp_path}, by [tool.repro] of its pyproject.toml: {shlex.quote(sys.executable)} train.py"
    )
    content = json.loads((below / "answers.json").read_text())
    assert [answer["question"] for answer in content["answers"]] == ["restart"]
    (levels,) = content["levels"]
    assert (
        levels["level"] == 1
        and "Level 1 of 6: again. Not level 2, resumed and killed (skipped: resume, kill)" in done.stdout
    )
    assert [path.name for path in below.iterdir() if path.suffix != ".toml"] == ["answers.json"]
    assert list(tmp_path.glob("repro-records/verify-*/results.json"))
    done = repro("record", "--to", "mine", cwd=below)
    assert done.returncode == 0 and (below / "mine").is_dir(), done.stderr
