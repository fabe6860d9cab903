"""Container engines: what they are asked, how their containers end, and who may write into a record from inside."""

import os
import signal
import stat
import subprocess
import sys
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from repro.containers.command_line import Addition
from repro.containers.runtimes import ContainerRuntime, sif_number
from repro.errors import UsageError
from repro.record.recording import Recording
from support import commands
from support.commands import container
from support.runs import HANG


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts a program of this name, and this code, before all others."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return partial(commands.program, tmp_path / "bin")


INSPECTED = [{"Id": "sha256:1", "RepoDigests": ["i@sha256:2"], "Config": {"Env": ["PYTHONPATH=/i", "A=image", "B=b"]}}]


def test_the_environment_inside_docker(stand_in: Callable[[str, str], None], tmp_path: Path) -> None:
    stand_in("docker", f"assert words == ['-D', 'image', 'inspect', 'i']; print(json.dumps({INSPECTED}))")
    (tmp_path / "list").write_text("# A=no\nA=file\nC\n\n  D=d\n")
    text = f"docker -D run --env-file {tmp_path}/list -e A=flag -e E -e F -e G= i x"
    asked = ContainerRuntime(container(text), {**os.environ, "C": "c", "E": "e", "H": "h"})
    assert asked.variables == {"PYTHONPATH": "/i", "A": "flag", "B": "b", "C": "c", "D": "d", "E": "e", "G": ""}
    assert asked.facts == {"engine": "docker", "name": "i", "image": "sha256:1", "digest": "i@sha256:2"}


def test_the_environment_inside_apptainer(stand_in: Callable[[str, str], None]) -> None:
    expected = ["exec", "--env", "A=1", "i.sif", "cat", "/proc/self/environ"]
    stand_in("apptainer", f"assert words == {expected}; print('PYTHONPATH=/i\\0A=1\\0', end='')")
    asked = ContainerRuntime(container("apptainer run --env A=1 i.sif train"), os.environ)
    assert asked.variables == {"PYTHONPATH": "/i", "A": "1"}


def test_an_image_that_is_not_here_is_fetched_first(stand_in: Callable[[str, str], None], tmp_path: Path) -> None:
    log = tmp_path / "log"
    stand_in("docker", f"open({str(log)!r}, 'a').write(' '.join(words) + '\\n'); sys.exit(1)")
    assert ContainerRuntime(container("docker run i"), os.environ).variables == {}
    assert log.read_text().splitlines() == ["image inspect i", "pull i", "image inspect i"]
    log.unlink()
    assert ContainerRuntime(container("docker run --pull never i"), os.environ).variables == {}
    assert log.read_text().splitlines() == ["image inspect i"]


def test_an_engine_that_is_not_there_is_no_error() -> None:
    asked = ContainerRuntime(container("docker run i"), {"PATH": "/nowhere"})
    asked.end(signal.SIGKILL, 0)
    asked.remove()
    assert (asked.variables, asked.facts["image"]) == ({}, None)


def test_only_containers_of_ours_are_ended(stand_in: Callable[[str, str], None], tmp_path: Path) -> None:
    log = tmp_path / "log"
    stand_in(
        "docker",
        f"""open({str(log)!r}, 'a').write(' '.join(words) + '\\n')
if words[0] == 'ps': print('three' if '--filter=status=created' in words else 'one\\ntwo')
if words[0] == 'inspect': print({os.getpid()})""",
    )
    asked = ContainerRuntime(container("sudo docker run i"), os.environ)
    assert asked._program == ["sudo", "docker"]
    asked = ContainerRuntime(container("nice docker --tls container run i"), os.environ)
    assert asked._program == ["docker", "--tls"]
    asked = ContainerRuntime(container("docker run i"), os.environ)
    asked.end(signal.SIGKILL, 0)
    asked.remove()
    assert log.read_text().splitlines() == [
        f"ps --quiet --no-trunc --filter=label=repro.run={asked.label}",
        "kill one two",
        f"ps --quiet --no-trunc --filter=label=repro.run={asked.label} --filter=status=created --all",
        "rm --force --volumes three",
        f"ps --quiet --no-trunc --filter=label=repro.run={asked.label} --all",
        "rm --force --volumes one two",
    ]
    assert f"--label=repro.run={asked.label}" in asked.words([])


@pytest.mark.parametrize("handled", [True, False])
def test_a_signal_that_nobody_heeds_is_not_waited_for(
    handled: bool, stand_in: Callable[[str, str], None], tmp_path: Path
) -> None:
    handler = "signal.signal(signal.SIGTERM, print);" if handled else ""
    code = f"import signal, time; {handler} print(flush=True); time.sleep({HANG})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        log = tmp_path / "log"
        stand_in(
            "docker",
            f"""open({str(log)!r}, 'a').write(' '.join(words) + '\\n')
if words[0] == 'ps': print('one')
if words[0] == 'inspect': print({process.pid})""",
        )
        ContainerRuntime(container("docker run i"), os.environ).end(signal.SIGTERM, 0.3)
        process.kill()
    kills = [line for line in log.read_text().splitlines() if line.startswith("kill")]
    assert kills == (["kill --signal=SIGTERM one", "kill one"] if handled else ["kill one"])


def test_the_number_of_an_image_of_apptainer(tmp_path: Path) -> None:
    number = uuid.uuid4()
    path = tmp_path / "i.sif"
    path.write_bytes(
        b"#!/usr/bin/env run-singularity\n\0" + b"SIF_MAGIC\0" + b"01\0" + b"02\0" + number.bytes + b"more"
    )
    assert sif_number(path) == f"sif:{number}"
    for content in (b"", b"SIF_MAGIC\0", b"x" * 100, path.read_bytes()[:60]):
        (tmp_path / "other").write_bytes(content)
        assert sif_number(tmp_path / "other") is None
    assert sif_number(tmp_path / "none") is None and sif_number(tmp_path) is None


# --- the record -----------------------------------------------------------------------------------------------------


def modes(*paths: Path) -> list[int]:
    return [stat.S_IMODE(path.stat().st_mode) for path in paths]


def test_anybody_inside_may_write_and_nobody_else(stand_in: Callable[[str, str], None], tmp_path: Path) -> None:
    stand_in("docker", f"print(json.dumps({INSPECTED}))")
    (tmp_path / "t").mkdir(mode=0o750)
    run = tmp_path / "t" / "run"
    command = ["docker", "run", "-v", f"{run}/deep/er:/out", "-v", f"{tmp_path}/t/other:/x", "i", "x"]
    recording = Recording(command, tmp_path / "t" / "record", run=run, keep=True)
    record = tmp_path / "t" / "record"
    shared = [record / "steps", record / "kept", run, run / "deep" / "er"]
    assert modes(*shared) == [0o777] * 4 and modes(record, tmp_path / "t") == [0o700] * 2
    assert not (tmp_path / "t" / "other").exists()  # it is the user's
    content = recording.finish(0).content
    assert modes(tmp_path / "t") == [0o750] and not [mode for mode in modes(*shared[:3], record) if mode & 0o022]
    assert content.facts["container"]["image"] == "sha256:1"
    assert content.facts["environment"] == {"PYTHONPATH": "/i"}


def test_a_record_of_apptainer_stays_as_it_is(stand_in: Callable[[str, str], None], tmp_path: Path) -> None:
    stand_in("apptainer", "print('OMP_NUM_THREADS=3')")
    run = tmp_path / "run"
    recording = Recording(["apptainer", "run", "-B", f"{run}/x:/x", "i.sif"], tmp_path / "record", run=run)
    assert (run / "x").is_dir() and not [mode for mode in modes(tmp_path / "record" / "steps", run) if mode & 0o022]
    assert "APPTAINERENV" not in str(recording.environment)
    assert "REPRO_OBSERVE" not in recording.environment


def test_the_words_and_the_environment_of_a_recording(stand_in: Callable[[str, str], None], tmp_path: Path) -> None:
    stand_in("docker", f"print(json.dumps({INSPECTED}))")
    host = {**os.environ, "PYTHONPATH": "/host", "SECRET": "s"}
    command, changes = ["docker", "run", "i", "x"], Addition((), {"TZ": "Asia/Tokyo"}, cores=(0,), terminal=False)
    watched: dict[bool, Any] = {}
    for observed in (True, False):
        watched[observed] = Recording(
            command, tmp_path / str(observed), variables=host, changes=changes, observed=observed
        )
        assert watched[observed].environment["PYTHONPATH"] == "/host"
        words = watched[observed].words
        assert words[:2] == command[:2] and words[-2:] == command[2:] and "TZ=Asia/Tokyo" in words
        assert "SECRET" not in " ".join(words) and "/host" not in " ".join(words)
    assert "PYTHONPATH=/repro-package/inject/site:/i" in watched[True].words
    assert "repro-package" not in " ".join(watched[False].words)


def test_a_container_in_the_background_is_refused() -> None:
    with pytest.raises(UsageError, match="leave --detach out"):
        ContainerRuntime(container("docker run -d i"), {})
    ContainerRuntime(container("docker run --detach=false i"), {})
