"""`repro record` and `verify` of a container's command and of an MLCube's task; a program stands in for the engine."""

import json
import os
from pathlib import Path

import pytest

from repro import __main__
from repro.record import record
from support import commands
from support.commands import SCRIPTS

# As Docker would run it, but on the host: paths inside become those outside, and the image's program a script's.
ENGINE = f"""
import os
if words[0] == "image": print(json.dumps([{{"Id": "sha256:1", "Config": {{"Env": ["A=1"]}}}}])); sys.exit()
if words[0] != "run": sys.exit()
at = words.index("an-image")
texts = [word.split(",") for word in words[:at] if word.startswith("type=bind")]
mounts = [dict(part.split("=") for part in parts if "=" in part) for parts in texts]
places = [(mount["source"], mount["target"]) for mount in mounts]
places += [tuple(value.split(":")) for option, value in zip(words[:at], words[1:]) if option == "--volume"]
places += [(os.path.dirname(one), os.path.dirname(two)) for one, two in places if two == "/repro-record/steps"]
def outside(text):
    for source, target in places:
        text = text.replace(target, source)
    return text
given = dict(value.split("=", 1) for option, value in zip(words[:at], words[1:]) if option == "--env")
given = {{name: outside(value) for name, value in given.items() if name != "PYTHONPATH"}}
inner = [outside(word) for word in words[at + 2 :]]
os.execve(sys.executable, [sys.executable, {str(SCRIPTS)!r} + f"/{{words[at + 1]}}.py", *inner], given)
"""
CUBE = """
docker: {image: an-image}
singularity: {image: none.sif}
tasks:
  trainer: {parameters: {outputs: {out: {type: directory, default: out}}}}
  set_order: {parameters: {outputs: {out: {type: directory, default: out}}}}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to start commands in, with an MLCube in it and the engine on the path."""
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "PYTHONHASHSEED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    commands.program(tmp_path / "bin", "docker", ENGINE)
    (tmp_path / "cube").mkdir()
    (tmp_path / "cube" / "mlcube.yaml").write_text(CUBE)
    return tmp_path


def call(*words: str) -> int:
    return __main__.main([*words])


def test_a_container_is_recorded(here: Path) -> None:
    command = ["docker", "run", "--volume", f"{here}/out:/out", "an-image", "trainer", "--out=/out", "--pause=0"]
    assert call("record", "--to", "a", "--output", "out/*.json", "--", *command) == 0
    recorded = record.read(here / "a")
    assert (recorded.steps, [*recorded.outputs]) == (12, ["out/checkpoint.json", "out/model.json"])
    assert recorded.content.command == command
    assert recorded.content.facts["container"] == {
        "engine": "docker",
        "name": "an-image",
        "image": "sha256:1",
        "digest": None,
    }


def test_a_task_of_an_mlcube_is_recorded_where_the_cube_puts_it(here: Path) -> None:
    assert call("record", "--to", "a", "--mlcube=cube", "--task=trainer", "--", "out=other") == 0
    assert record.read(here / "a").steps == 12
    assert (here / "cube" / "workspace" / "other" / "model.json").exists()
    assert call("record", "--to", "b", "--mlcube=cube/mlcube.yaml", "--task", "trainer", "--workspace=w") == 0
    assert record.read(here / "b").content.fingerprint == record.read(here / "a").content.fingerprint
    assert (here / "w" / "out" / "model.json").exists()


def verify(*words: str) -> tuple[int, dict[str, dict]]:
    code = call("verify", "--json", "answers.json", *words)
    return code, {one["question"]: one for one in json.loads(Path("answers.json").read_text())["answers"]}


def test_a_change_reaches_into_a_container(here: Path) -> None:
    code, answers = verify("--ask", "restart", "--mlcube=cube", "--task=set_order")
    assert code == 3 and "3 runs with PYTHONHASHSEED=0 are the same" in answers["restart"]["why"]
    code, answers = verify(
        "--ask", "restart,observed,environment", "--output", "{run}/out/*", "--mlcube=cube", "--task=trainer"
    )
    assert code == 0 and {one["answer"] for one in answers.values()} == {"same"}
    assert not (here / "cube" / "workspace" / "out").exists()  # each run has its own


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mlcube=cube",), "--mlcube needs --task, one of the MLCube's"),
        (("--task=trainer", "--", "true"), "--task goes with --mlcube"),
        (("--platform=docker", "--", "true"), "--platform goes with --mlcube"),
        (("--workspace=w", "--", "true"), "--workspace goes with --mlcube"),
        (("--mlcube=cube", "--task=trainer", "--platform=podman"), "invalid choice: 'podman'"),
        (("--mlcube=cube", "--task=trainer", "out"), "'out': with --mlcube write KEY=VALUE, for a task's parameter"),
        (("--mlcube=cube", "--task=trainer", "--", "python", "x.py"), "'python': with --mlcube write KEY=VALUE"),
        (("--mlcube=cube", "--task=trainer", "a=b"), "has no parameter 'a'; its parameters: out"),
        (("--mlcube=cube", "--task=none"), "it has no task 'none'; --task must be one of trainer, set_order"),
        (("--mlcube=none", "--task=trainer"), "--mlcube names the folder of a mlcube.yaml"),
        (
            ("--mlcube=cube", "--task=trainer", "--platform=singularity"),
            "none.sif does not exist; make it: mlcube conf",
        ),
        (("a=b", "--", "true"), "unrecognized arguments: a=b"),
        (("--", "docker", "run", "-d", "an-image", "trainer"), "leave --detach out"),
    ],
)
@pytest.mark.parametrize("task", ["record", "verify"])
def test_what_is_wrong_is_one_line(
    task: str, words: tuple[str, ...], said: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call(task, *words) == 2
    (error,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert said in error


def test_a_question_about_an_image(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert call("verify", "--image", "no.sif", "--", "true") == 2
    assert "--image no.sif: " in capfd.readouterr().err
    code, answers = verify("--ask", "container", "--output", "{run}/x", "--", "sh", "-c", "echo 1 > {run}/x")
    assert code == 4 and answers["container"]["why"] == "--image names no image"
