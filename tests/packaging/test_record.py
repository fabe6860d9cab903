"""`repro record` and `verify` of commands in real containers: observed as on the host, changed, stopped, ended."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from repro.containers.command_line import LABEL, find
from repro.containers.runtimes import ContainerRuntime
from repro.record import record
from support import keys, probes
from support.commands import REPRO, SCRIPTS
from support.probes import STEPS, Caller
from support.runs import HANG, PROGRAMS, ROOT
from support.waiting import until

HERE = Path(__file__).parent
PYTORCH = "/opt/repro/.venv/pytorch/bin/python"


@dataclass
class User:
    """The user who calls `repro`: with which Python, from which repository."""

    caller: Caller
    repro: list[str]
    root: Path

    def start(self, folder: Path, *words: str) -> subprocess.Popen[str]:
        return self.caller.start([*self.repro, *words], folder, {"PYTHONPATH": str(self.root)})

    def record(self, folder: Path, *command: str) -> record.Record:
        """The record of a command that ends well."""
        to = folder / f"record-{time.monotonic_ns()}"
        self.caller.run([*self.repro, "record", "--to", str(to), *command], folder, {"PYTHONPATH": str(self.root)})
        return record.read(to)

    def verify(self, folder: Path, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
        """The exit code, and the answers by question."""
        file = folder / "answers.json"
        with self.start(folder, "verify", "--json", str(file), *words) as process:
            output, _ = process.communicate(timeout=HANG)
        assert file.exists(), output
        answers = {answer["question"]: answer for answer in json.loads(file.read_text())["answers"]}
        file.unlink()
        return process.returncode, answers

    def audit(self, folder: Path, begin: list[str], resume: list[str], *options: str) -> tuple[int, str]:
        """The exit code and the output of an audit of all segments of a training in portable numerics."""
        record, key = (
            self.record(folder, "--portable", "--checkpoints", "{run}/*.pt", "--", *begin).path,
            folder / "key",
        )
        keys.make(key)
        probes.give(key, self.caller.uid, self.caller.gid)
        self.caller.run(
            [*self.repro, "receipt", str(record), "--key", str(key)], folder, {"PYTHONPATH": str(self.root)}
        )
        words = ["audit", str(record / "receipt.json"), str(record), "--segments=all", *options, "--", *resume]
        with self.start(folder, *words) as process:
            output, _ = process.communicate(timeout=HANG)
        return process.returncode, output


@pytest.fixture(scope="session")
def me(tmp_path_factory: pytest.TempPathFactory) -> User:
    """Whoever runs the tests, who may use Docker's socket where its engine answers."""
    return User(Caller(os.getuid(), os.getgid(), tmp_path_factory.mktemp("home")), REPRO, ROOT)


@pytest.fixture(scope="session")
def plain(source: Path, caller: Caller, me: User) -> User:
    """A plain user; for root, one with a Python of his own, as root's may lie where he cannot go."""
    if os.getuid() == caller.uid:
        return me
    caller.run(["requirements/install.sh", "dev"], source, timeout=HANG)
    return User(caller, [str(source / ".venv" / "dev" / "bin" / "python"), *REPRO[1:]], source)


@pytest.fixture
def folder(playground: Path, caller: Caller) -> Iterator[Path]:
    """A place to start commands in, with the scripts and data of the plain user's own."""
    place = playground / f"records-{time.monotonic_ns()}"
    shutil.copytree(SCRIPTS, place / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROGRAMS / "resumable_training.py", place / "scripts")
    for number in range(16):
        (place / "data" / str(number)).mkdir(parents=True)
    if os.getuid() == 0:
        probes.give(place, caller.uid, caller.gid)
    yield place
    shutil.rmtree(place)


def in_docker(image: str, program: str, folder: Path, *words: str, options: tuple[str, ...] = ()) -> list[str]:
    """A script in a container as people start one: its first process is Python, and it is of the image's user."""
    return [
        "docker",
        "run",
        "--network=none",
        *options,
        f"--volume={folder}/scripts:/scripts:ro",
        f"--volume={folder}/data:/data:ro",
        "--volume={run}:/out",
        "--workdir=/",
        f"--entrypoint={program}",
        image,
        f"/scripts/{words[0]}",
        "--out=/out",
        *words[1:],
    ]


def in_apptainer(sif: Path, program: str, folder: Path, *words: str) -> list[str]:
    folders = f"{folder}/scripts:/scripts:ro,{folder}/data:/data:ro"
    return [
        "apptainer",
        "exec",
        "--containall",
        "--bind",
        folders,
        "--bind",
        "{run}:/out",
        "--pwd",
        "/",
        str(sif),
        program,
        f"/scripts/{words[0]}",
        "--out=/out",
        *words[1:],
    ]


def ours() -> list[str]:
    """The containers that `repro` has started, and that are there, running or not."""
    return subprocess.check_output(["docker", "ps", "--all", "--quiet", f"--filter=label={LABEL}"], text=True).split()


@pytest.fixture
def on_bare_host(me: User, tmp_path: Path) -> record.Record:
    python = ROOT / ".venv" / "pytorch" / "bin" / "python"
    if not python.exists():
        pytest.skip("no environment .venv/pytorch; make it with: requirements/install.sh pytorch")
    return me.record(tmp_path, "--", str(python), str(PROGRAMS / "resumable_training.py"), f"--out={tmp_path}")


class TestDocker:
    def test_the_record_is_that_of_the_host(
        self, image: str, me: User, folder: Path, on_bare_host: record.Record
    ) -> None:
        confined = (
            "--rm",
            "--read-only",
            "--tmpfs=/out",
            "--tmpfs=/tmp",
            "--cap-drop=ALL",
            "--user=4242:4242",
            "--security-opt=no-new-privileges",
            "--env=PYTHONPATH=/of-the-user",
        )
        command = [
            word
            for word in in_docker(image, PYTORCH, folder, "resumable_training.py", options=confined)
            if "{run}" not in word
        ]
        result = me.record(folder, "--keep", "--", *command)
        assert result.content.fingerprint == on_bare_host.content.fingerprint and result.steps == 12
        inspected = subprocess.check_output(
            ["docker", "image", "inspect", "--format={{.Id}}", image], text=True
        ).strip()
        facts = result.content.facts
        assert (facts["container"]["engine"], facts["container"]["image"]) == ("docker", inspected)
        assert facts["environment"] == {"PYTHONPATH": "/of-the-user"}
        assert facts["scripts"].keys() == {f"{folder}/scripts/resumable_training.py"}
        assert any((result.path / record.KEPT).iterdir())
        assert not [path for path in (result.path, *result.path.iterdir()) if path.stat().st_mode & 0o022]

    def test_a_fault_is_named_and_containers_are_ended(self, image: str, me: User, folder: Path) -> None:
        before = ours()
        command = in_docker(
            image,
            PYTORCH,
            folder,
            "resumable_training.py",
            "--forget",
            "--pause=0.1",
            options=(f"--name={folder.name}",),
        )
        code, answers = me.verify(
            folder, "--ask", "restart,resume,kill", "--resume", " ".join([*command, "--resume"]), "--", *command
        )
        assert code == 3 and answers["restart"]["answer"] == "same"
        for question in ("resume", "kill"):
            assert answers[question]["first"]["channel"] == "optimizer", answers[question]
            assert "the optimizer" in answers[question]["why"] and "not restored" in answers[question]["why"]
        assert ours() == before

    def test_changes_reach_inside(self, image: str, me: User, folder: Path) -> None:
        _, answers = me.verify(
            folder,
            "--ask",
            "restart,environment,file_order,cores",
            "--",
            *in_docker(image, "python3", folder, "listing_order.py", "--pause=0"),
        )
        assert answers["file_order"]["answer"] == "differs" and answers["environment"]["answer"] == "same"
        if answers["cores"]["answer"] != "not asked":
            code = "import os; print(len(os.sched_getaffinity(0)), file=open('/out/cores', 'w'))"
            counting = in_docker(image, "python3", folder, "x")[:-2]
            _, answers = me.verify(folder, "--ask", "cores", "--output", "{run}/cores", "--", *counting, "-c", code)
            assert answers["cores"]["answer"] == "differs"
        _, answers = me.verify(
            folder, "--ask", "restart", "--", *in_docker(image, "python3", folder, "set_order.py", "--pause=0")
        )
        assert "3 runs with PYTHONHASHSEED=0 are the same" in answers["restart"]["why"]

    @pytest.mark.usefixtures("interruptible")
    def test_ctrl_c_ends_the_container(self, image: str, me: User, folder: Path) -> None:
        before = ours()
        with me.start(
            folder, "verify", "--", "docker", "run", "-it", "--entrypoint=sleep", image, str(HANG)
        ) as process:
            until(lambda: ours() != before)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=HANG) == 1
        assert ours() == before

    def test_what_is_about_to_start_is_ended(self, image: str) -> None:
        container = find(["docker", "run", "--entrypoint=sleep", image, str(HANG)])
        assert container
        asked = ContainerRuntime(container, os.environ)
        words = ["create" if word == "run" else word for word in asked.words([])]
        number = subprocess.check_output(words, text=True).strip()
        asked.end(signal.SIGINT, 0.1)
        assert subprocess.run(["docker", "start", number], capture_output=True, check=False).returncode != 0

    def test_the_same_command_in_an_image(self, image: str, me: User, folder: Path) -> None:
        built = f"{image}-on-path"
        recipe = f"FROM {image}\nENV PATH={Path(PYTORCH).parent}:/usr/bin:/bin\n"
        subprocess.run(["docker", "build", "--quiet", "--tag", built, "-"], input=recipe, text=True, check=True)
        python = ROOT / ".venv" / "pytorch" / "bin" / "python"
        command = [str(python), "scripts/resumable_training.py", "--out={run}"]
        code, answers = me.verify(folder, "--ask", "container", "--image", built, "--", *command)
        assert (code, answers["container"]["answer"]) == (0, "same")
        code, answers = me.verify(
            folder, "--ask", "container", "--image", image, "--", *command
        )  # its python3 has none
        assert answers["container"]["answer"] == "cannot tell" and "torch" in answers["container"]["why"]
        subprocess.run(["docker", "rmi", built], check=True)

    def test_an_audit_in_an_image(self, image: str, me: User, folder: Path) -> None:
        built = f"{image}-to-audit"
        recipe = f"FROM {image}\nENV PATH={Path(PYTORCH).parent}:/usr/bin:/bin\n"
        subprocess.run(["docker", "build", "--quiet", "--tag", built, "-"], input=recipe, text=True, check=True)
        python = str(ROOT / ".venv" / "pytorch" / "bin" / "python")
        command = [python, "scripts/resumable_training.py", "--out={run}"]
        code, said = me.audit(folder, command, [*command, "--resume"], "--image", built)
        assert code == 0 and "6 segments of 6 done again, 12 of 12 steps" in said, said
        subprocess.run(["docker", "rmi", built], check=True)

    def test_a_task_of_this_cube(self, image: str, source: Path, me: User, short: Path) -> None:
        probes.give(short, os.getuid(), os.getgid())
        cube = ("--mlcube", str(source), "--task=pytorch", "--workspace", str(short))
        code, answers = me.verify(short, "--ask", "restart,observed", *cube)
        assert code == 0 and {answer["answer"] for answer in answers.values()} == {"same"}
        assert f"{STEPS} steps" in answers["restart"]["why"]

    @pytest.mark.parametrize("framework", ["pytorch", "tensorflow"])
    def test_the_suite_is_observed_and_its_fingerprint_stays(
        self, framework: str, image: str, me: User, short: Path, on_host: Callable[[str], str]
    ) -> None:
        probes.give(short, os.getuid(), os.getgid())
        options = [f"--user={os.getuid()}:{os.getgid()}", "--network=none", f"--volume={short}:/workspace"]
        command = ["docker", "run", "--rm", *options, image, framework, "--workspace=/workspace"]
        result = me.record(short, "--", *command)
        assert result.steps == STEPS
        assert probes.experiment_of(short, framework)["sha256"]["final_weights"] == on_host(framework)


class TestApptainer:
    def test_the_record_is_that_of_the_host(
        self, sif: Path, plain: User, folder: Path, on_bare_host: record.Record
    ) -> None:
        command = in_apptainer(sif, PYTORCH, folder, "resumable_training.py")
        result = plain.record(folder, "--", *[word.replace("{run}", str(folder / "data")) for word in command])
        assert result.content.fingerprint == on_bare_host.content.fingerprint and result.steps == 12
        container = result.content.facts["container"]
        assert container["engine"] == "apptainer" and container["image"].startswith("sif:")
        assert probes.owners(result.path) == {(plain.caller.uid, plain.caller.gid)}

    def test_a_fault_is_named(self, sif: Path, plain: User, folder: Path) -> None:
        command = in_apptainer(sif, PYTORCH, folder, "resumable_training.py", "--forget", "--pause=0.1")
        resume = ("--resume", " ".join([*command, "--resume"]))
        code, answers = plain.verify(folder, "--ask", "restart,resume,kill", *resume, "--", *command)
        assert code == 3 and answers["restart"]["answer"] == "same"
        assert [answers[question]["first"]["channel"] for question in ("resume", "kill")] == ["optimizer"] * 2

    def test_changes_reach_inside(self, sif: Path, plain: User, folder: Path) -> None:
        _, answers = plain.verify(
            folder,
            "--ask",
            "restart,environment,file_order",
            "--",
            *in_apptainer(sif, "python3", folder, "listing_order.py", "--pause=0"),
        )
        assert answers["file_order"]["answer"] == "differs" and answers["environment"]["answer"] == "same"
        _, answers = plain.verify(
            folder, "--ask", "restart", "--", *in_apptainer(sif, "python3", folder, "set_order.py", "--pause=0")
        )
        assert "3 runs with PYTHONHASHSEED=0 are the same" in answers["restart"]["why"]

    def test_the_same_command_in_an_image(self, sif: Path, plain: User, folder: Path) -> None:
        command = [plain.repro[0], "scripts/trainer.py", "--out={run}", "--pause=0"]
        options = ("--image", str(sif), "--output", "{run}/model.json")
        code, answers = plain.verify(folder, "--ask", "container", *options, "--", *command)
        assert (code, answers["container"]["answer"]) == (0, "same"), answers

    def test_an_audit_inside(self, sif: Path, plain: User, folder: Path) -> None:
        command = in_apptainer(sif, PYTORCH, folder, "resumable_training.py")
        code, said = plain.audit(folder, command, [*command, "--resume"])
        assert code == 0 and "6 segments of 6 done again, 12 of 12 steps" in said, said

    def test_a_task_of_this_cube(self, sif: Path, source: Path, plain: User, short: Path) -> None:
        cube = ("--mlcube", str(source), "--task=pytorch", "--platform=singularity", "--workspace", str(short))
        code, answers = plain.verify(short, "--ask", "restart,observed", *cube)
        assert code == 0 and {answer["answer"] for answer in answers.values()} == {"same"}
        assert f"{STEPS} steps" in answers["restart"]["why"]
