"""The command line: what its parser takes and refuses, and how errors end."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import repro.commands
from repro import __main__, __version__
from repro.commands import command_options, commands, verify
from repro.containers import mlcube
from repro.frameworks import FRAMEWORKS
from repro.verify.command_questions import COMMAND_QUESTIONS
from support.runs import ROOT

COMMANDS = tuple(commands.parsers())
TRAINERS = ("download", *FRAMEWORKS, "sweep", "benchmark")


def call(*words: str) -> int:
    """The exit code of `repro WORDS`, in this process."""
    try:
        return __main__.main([*words])
    except SystemExit as end:
        return int(end.code or 0)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that `repro WORDS` ends with, as wrong usage."""
    assert call(*words) == 2
    output, errors = capsys.readouterr()
    assert output == "" and errors.startswith("error: ") and errors.count("\n") == 1
    return errors


def test_names_that_other_files_have_too() -> None:
    assert tuple(verify.QUESTIONS) == tuple(question.name for question in COMMAND_QUESTIONS)
    assert tuple(question.name for question in COMMAND_QUESTIONS if question.slow) == verify.BY_NAME
    assert command_options.PLATFORMS == mlcube.PLATFORMS


def test_help_lists_every_command_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--help") == 0
    lines = capsys.readouterr().out.splitlines()
    for name, parser in commands.parsers().items():
        assert f"  {name:<12}{parser.summary}" in lines
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert call(command, "--help", "--wrong") == 0
    helped = capsys.readouterr().out
    assert f"{command} " in helped.splitlines()[0] and "--debug" in helped
    assert max(map(len, helped.splitlines())) <= 90


def test_help_needs_the_standard_library_alone() -> None:
    """... so that it answers at once, and where nothing is installed."""
    code = "import sys; from repro.commands import commands; commands.parsers(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"numpy", "psutil", "rich", "jinja2", "hydra", "yaml", "safetensors"} & {*done.stdout.split()}


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--version") == 0
    assert capsys.readouterr().out == f"repro {__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["recrod", "--", "true"], "unknown command 'recrod'; did you mean record?"),
        (["train"], f"unknown command 'train'; the commands are {', '.join(COMMANDS)}"),
        ([""], "unknown command ''"),
        (["--quiet"], "unknown option '--quiet'; its options are --help, --debug, --version"),
        (["--workspace=.", "jax"], "unknown option '--workspace=.'"),
        (["record", "--outptu=x", "--", "true"], "record: unknown option '--outptu=x'; did you mean --output?"),
        (["record", "--out", "x", "--", "true"], "unknown option '--out'; did you mean --output?"),  # no abbreviations
        (["record", "python", "train.py"], "put -- before the command, as in: repro record -- python ..."),
        (["record", "./a b", "--lr=0.1"], "put -- before the command, as in: repro record -- './a b' ..."),
        (["verify", "--ask", "restart", "python", "-m", "train"], "put -- before the command, as in: repro verify --"),
        (["verify", "--lr=0.1"], "verify: unknown option '--lr=0.1'; did you mean"),
        (["verify", "a=1"], "verify: unrecognized arguments: a=1"),
        (["record", "--to"], "record: argument --to: expected one argument"),
        (["verify"], "verify: no command; put it after --"),
        (["compare", "a", "b", "--", "true"], "compare: it takes no command after --"),
        (["compare", "a", "b", "--workspace=."], "compare: unknown option '--workspace=.'"),
        (["compare", "a"], "compare: two runs' folders must be given, not 1"),
        (["report", "--narrow"], "report: unknown option '--narrow'"),
        (["report", "--workspace=none"], "none is not a folder"),
        (["verify", "--workspace=.", "--ask", "restart"], "--ask is for a command after --"),
        (["verify", "--workspace=.", "python"], "cannot read argument 'python'; write KEY=VALUE"),
    ],
)
def test_wrong_usage(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused(capsys, *words)


@pytest.mark.parametrize("command", TRAINERS)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no workspace; say where data and results lie with --workspace=DIR"),
        (["--workspace="], "no workspace; say where data and results lie with --workspace=DIR"),
        (["--workspace"], "argument --workspace: expected one argument"),
        (["params.seed=1"], "no workspace"),
        (["--workspace=missing"], "missing is not a folder; make it first"),
        (["--workspace=file"], "file is not a folder; make it first"),
        (["--workspace=.", "--workspce=x"], "unknown option '--workspce=x'; did you mean --workspace?"),
        (["--workspace=.", "--epochs=3"], "unknown option '--epochs=3'; its options are --help, --debug, --workspace"),
        (["--workspace=.", "-x"], "unknown option '-x'"),
        (["--workspace=.", "--"], "it takes no command after --"),
        (["--workspace=.", "params.seed"], "cannot read argument 'params.seed'; write KEY=VALUE"),
        (["--workspace=.", ""], "cannot read argument ''; write KEY=VALUE"),
        (["--workspace=.", "=3"], "cannot read argument '=3'; write KEY=VALUE"),
    ],
)
def test_wrong_usage_of_the_reference_trainers(
    command: str,
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert said in refused(capsys, command, *words)


def test_options_and_overrides_in_any_order(tmp_path: Path) -> None:
    options = commands.parse(["jax", "a=1", f"--workspace={tmp_path}", "+b.c=d e", "x="])
    assert (options.workspace, options.overrides) == (str(tmp_path), ["a=1", "+b.c=d e", "x="])
    options = commands.parse(["report", "a.json", "--to", "x", "b=c.json"])
    assert [*map(str, options.files)] == ["a.json", "b=c.json"]


def test_a_value_that_begins_with_a_dash() -> None:
    options = commands.parse(["verify", "--seed-option", "--seed={}", "--resume", "-x y"], ["true"])
    assert (options.seed_option, options.resume, options.command) == ("--seed={}", "-x y", ["true"])


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "No space left on device", "there"), "there: No space left on device; make it writable"),
        (ValueError("first\nsecond"), "ValueError: first (--debug shows where)"),
        (KeyboardInterrupt(), "interrupted"),
        (ModuleNotFoundError("No module named 'hydra'", name="hydra.core"), "requirements/install.sh pytorch"),
    ],
)
def test_an_error_is_one_line_and_1(
    error: BaseException, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(commands, "parse", fail)
    assert call("compare", "a", "b") == 1
    assert capsys.readouterr().err.startswith(f"error: {said}") or said.startswith("requirements")
    if isinstance(error, Exception):
        with pytest.raises(type(error)):
            call("compare", "a", "b", "--debug")
    assert call("compare", "a", "b", "--", "--debug") == 1  # a command's own


def test_ctrl_c_while_modules_are_imported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """They take a tenth of a second; what main() needs is imported where Ctrl-C is one line."""

    class Interrupted:
        def find_spec(self, *_: object) -> None:
            raise KeyboardInterrupt

    monkeypatch.delattr(repro.commands, "commands")
    for name in ("repro.__main__", "repro.commands.commands"):
        monkeypatch.delitem(sys.modules, name)
    main = importlib.import_module("repro.__main__").main
    assert "repro.commands.commands" not in sys.modules
    monkeypatch.setattr(sys, "meta_path", [Interrupted()])
    assert main(["verify", "--", "true"]) == 1
    assert capsys.readouterr().err == "error: interrupted\n"


def test_an_error_is_one_line_whatever_it_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", "a\n\x1b[2Jb\udcff")

    monkeypatch.setattr(commands, "parse", fail)
    assert call("compare", "a", "b") == 1
    assert capsys.readouterr().err.startswith("error: a  [2Jb : No space")


def test_without_the_repository(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("repro.commands.workspace.REPOSITORY", Path("/nowhere"))
    for words in (["jax"], ["verify", "--workspace=."]):
        assert f"call ./run.sh {words[0]}" in refused(capsys, *words)
