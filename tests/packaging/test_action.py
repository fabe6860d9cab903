"""action.yml: its steps run as GitHub runs them, on trainings that are and are not reproducible."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

from support.commands import script
from support.packages import UV, reach
from support.runs import PROGRAMS, ROOT

ACTION = ROOT / "action.yml"
EXPRESSION = re.compile(r"\$\{\{ inputs\.([a-z-]+) \}\}")
TRAINING = shlex.join([sys.executable, str(PROGRAMS / "numpy_training.py"), "--out={run}"])


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    return yaml.safe_load(ACTION.read_text())


@dataclass(frozen=True)
class Step:
    """What a step did: its exit code, what it printed, its outputs, its summary."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str


def run(action: dict[str, Any], number: int, folder: Path, **inputs: str) -> Step:
    """Runs a step as GitHub does: inputs by their defaults, files for outputs and summary, bash with its options."""
    given = {name: str(one.get("default", "")) for name, one in action["inputs"].items()} | inputs
    step = action["runs"]["steps"][number]
    environment = {name: EXPRESSION.sub(lambda match: given[match[1]], text) for name, text in step["env"].items()}
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        path.write_text("")
    environment |= {name: str(path) for name, path in files.items()}
    environment |= {"RUNNER_TEMP": str(folder.parent / "temp"), "GITHUB_ACTION_PATH": str(ROOT)}
    (folder / "step.sh").write_text(step["run"])
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(folder / "step.sh")]
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    lines = files["GITHUB_OUTPUT"].read_text().splitlines()
    outputs = dict(line.split("=", 1) for line in lines)
    return Step(done.returncode, done.stdout + done.stderr, outputs, files["GITHUB_STEP_SUMMARY"].read_text())


@pytest.fixture(scope="module")
def installed(action: dict[str, Any], wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of a job whose first step has installed the wheel."""
    folder = tmp_path_factory.mktemp("job") / "work"
    folder.mkdir()
    done = run(action, 0, folder, package=str(wheel), python=sys.executable)
    if "NewConnectionError" in done.log or "No matching distribution" in done.log:
        pytest.skip(f"the package index cannot be reached: {done.log.splitlines()[-1]}")
    assert done.code == 0, done.log
    return folder


def test_an_input_is_never_text_of_a_script(action: dict[str, Any]) -> None:
    steps = action["runs"]["steps"]
    assert not [step for step in steps if "${{" in step["run"]]
    used = [name for step in steps for text in step["env"].values() for name in EXPRESSION.findall(text)]
    used += EXPRESSION.findall(steps[1]["working-directory"])
    assert sorted(used) == sorted(action["inputs"])


def test_a_reproducible_training(action: dict[str, Any], installed: Path) -> None:
    options = "--output '{run}/model.npz'"
    done = run(action, 1, installed, command=TRAINING, ask="restart,hash_seed", options=options)
    assert done.code == 0, done.log
    assert done.outputs.keys() == action["outputs"].keys()
    assert (done.outputs["verdict"], done.outputs["level"]) == ("reproducible", "1")
    assert re.fullmatch("sha256:[0-9a-f]{64}", done.outputs["fingerprint"])
    assert Path(done.outputs["results"]).is_file() and Path(done.outputs["report"]).is_file()
    html = MarkdownIt("gfm-like", {"linkify": False}).render(done.summary)
    assert "<td>same; ✓ as promised; 2 runs, outputs: 1</td>" in html and "<h1>Will you get it again?</h1>" in html


def test_a_training_that_is_not_reproducible_fails_the_job(action: dict[str, Any], installed: Path) -> None:
    done = run(action, 1, installed, command=f"{TRAINING} --unseeded", ask="restart")
    assert (done.code, done.outputs["verdict"]) == (3, "not reproducible"), done.log
    assert "✗ promised: same" in done.summary
    faulty, resumed = (
        shlex.join(script("generator_not_restored", "--out={run}", *more)) for more in ([], ["--resume"])
    )
    done = run(action, 1, installed, command=faulty, resume=resumed, ask="kill")
    assert (done.code, done.outputs["verdict"]) == (3, "not reproducible"), done.log
    assert "the random generator was not restored" in done.summary


def test_a_project_names_its_own_training(action: dict[str, Any], installed: Path) -> None:
    (installed / "pyproject.toml").write_text(f'[tool.repro]\ncommand = "{TRAINING}"\nask = ["hash_seed"]\n')
    done = run(action, 1, installed, ask="restart")
    (installed / "pyproject.toml").unlink()
    assert (done.code, done.outputs["verdict"]) == (0, "reproducible"), done.log
    assert "Run again" in done.summary and "Another hash seed" not in done.summary


def test_a_training_that_fails_and_one_that_cannot_be_asked(action: dict[str, Any], installed: Path) -> None:
    done = run(action, 1, installed, command="false", ask="restart")
    assert (done.code, done.outputs["verdict"]) == (1, "failed") and done.summary, done.log
    done = run(action, 1, installed, command=TRAINING, ask="no_such_question")
    assert (done.code, done.outputs) == (2, {"verdict": "failed"}), done.log
    assert done.summary == "`repro verify` failed with code 2, see the log.\n" and "no_such_question" in done.log


@pytest.mark.parametrize("name", ["command", "ask", "options", "resume"])
def test_what_an_input_holds_is_a_word_and_not_a_command(name: str, action: dict[str, Any], installed: Path) -> None:
    inputs = {"command": TRAINING, "ask": "restart"}
    for text in ('"; touch INJECTED; "', "$(touch INJECTED)", "`touch INJECTED`", "x\ntouch INJECTED"):
        run(action, 1, installed, **inputs | {name: inputs.get(name, "") + text})
        assert not list(installed.rglob("INJECTED"))


def test_it_and_the_workflow_of_the_docs_are_of_githubs_schemas(action: dict[str, Any], tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "publishing.md").read_text()
    (shown,) = re.findall(r"```yaml\n(name: .*?)```", page, re.DOTALL)
    (tmp_path / "workflow.yml").write_text(shown)
    steps = yaml.safe_load(shown)["jobs"]["reproducible"]["steps"]
    (used,) = [step for step in steps if step["uses" if "uses" in step else "run"].startswith("OWNER/repro@")]
    assert "command" in used["with"] and used["with"].keys() <= action["inputs"].keys()
    assert {*re.findall(r"steps\.repro\.outputs\.(\w+)", shown)} <= action["outputs"].keys()
    for name in (*action["inputs"], *action["outputs"]):
        assert f"`{name}`" in page
    for schema, path in (("github-actions", ACTION), ("github-workflows", tmp_path / "workflow.yml")):
        reach(UV, "tool", "run", "check-jsonschema", f"--builtin-schema=vendor.{schema}", path)
