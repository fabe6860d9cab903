"""`mlcube run` on both platforms: the host's fingerprint, the caller's files, a network for `download` alone."""

import gzip
import http.server
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

import repro
from repro.frameworks import FRAMEWORKS
from support import probes
from support.probes import Caller
from support.runs import HANG, ROOT, some


@pytest.fixture(scope="session")
def mlcube(source: Path, caller: Caller) -> Path:
    """The tool, installed from its lock by the plain user, in a copy of the repository."""
    caller.run(["make", "mlcube"], source)
    return source / ".venv" / "mlcube" / "bin" / "mlcube"


def command(mlcube: Path, platform: str, tasks: str, workspace: Path) -> list[str]:
    """`mlcube run` of tasks; its own settings, which it writes, stay out of the caller's home."""
    cube = mlcube.parents[3]
    run = [mlcube, "run", f"--mlcube={cube}", f"--platform={platform}", f"--task={tasks}", f"--workspace={workspace}"]
    return ["env", f"MLCUBE_SYSTEM_SETTINGS={workspace}.mlcube.yaml", *map(str, run)]


def ask_little(workspace: Path) -> None:
    """Lets `verify` and `benchmark` ask of JAX alone what takes seconds: a task of a cube takes no arguments."""
    path = workspace / "train.yaml"
    configuration = yaml.safe_load(path.read_text())
    configuration["verify"] |= {"frameworks": ["jax"], "questions": ["restart_cpu"], "steps": 10}
    configuration["benchmark"] |= {
        "frameworks": ["jax"],
        "numerics": ["deterministic"],
        "tutorial": False,
        "target": None,
        "epochs": 0.01,
        "rounds": 2,
    }
    path.write_text(yaml.safe_dump(configuration))


def assert_answered(output: str, workspace: Path, caller: Caller) -> None:
    """Both left what they found, all of it the caller's own, and the report shows it."""
    (asked,) = workspace.glob("verify/*/results.json")
    (answer,) = json.loads(asked.read_text())["answers"]
    assert (answer["question"], answer["answer"]) == ("restart_cpu", "same")
    (measured,) = workspace.glob("benchmark/*/benchmark.json")
    (row,) = json.loads(measured.read_text())["rows"]
    page = (workspace / "report" / "report.html").read_text()
    (fingerprint,) = row["fingerprints"]
    for shown in (answer["title"], fingerprint.removeprefix("sha256:")[:8]):
        assert shown in output and shown in page
    assert probes.owners(workspace) == {(caller.uid, caller.gid)}


class TestDocker:
    """As root, because on a test machine nobody else may use Docker's socket."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Caller:
        return Caller(os.getuid(), os.getgid(), tmp_path)

    @pytest.mark.parametrize("framework", some(FRAMEWORKS, "jax"))  # test_docker.py has them all
    def test_fingerprint_of_the_host(
        self,
        framework: str,
        image: str,
        mlcube: Path,
        short: Path,
        root: Caller,
        poisoned: dict[str, str],
        on_host: Callable[[str], str],
    ) -> None:
        probes.give(short, root.uid, root.gid)
        with root.start(command(mlcube, "docker", framework, short), mlcube.parent, poisoned) as process:
            assert probes.confinement_of_training(process, short) == probes.CONFINED
            output, _ = process.communicate(timeout=HANG)
        assert process.returncode == 0, output
        assert probes.fingerprint_of(output) == on_host(framework)
        assert probes.owners(short) == {(root.uid, root.gid)}
        container = probes.experiment_of(short, framework)["container"]
        inspect = ["docker", "image", "inspect", "--format={{.Id}}", probes.IMAGE]
        digest = subprocess.check_output(inspect, text=True).strip()
        assert container == {"engine": "docker", "image": digest}

    def test_download_alone_has_a_network(self, image: str, mlcube: Path, short: Path, root: Caller) -> None:
        probes.give(short, root.uid, root.gid)
        since = str(time.time())
        root.run(command(mlcube, "docker", "download,jax", short), mlcube.parent)
        asked = ["docker", "events", f"--since={since}", f"--until={time.time()}", "--format={{json .}}"]
        events = [json.loads(line) for line in subprocess.check_output(asked, text=True).splitlines()]
        own = {event["Actor"]["ID"] for event in events if event.get("from") == probes.IMAGE}  # not someone else's
        networks = [event["Actor"]["Attributes"] for event in events if event["Action"] == "connect"]
        assert [network["name"] for network in networks if network["container"] in own] == ["bridge", "none"]

    def test_verify_benchmark_and_report(self, image: str, mlcube: Path, short: Path, root: Caller) -> None:
        ask_little(short)
        probes.give(short, root.uid, root.gid)
        output = root.run(command(mlcube, "docker", "verify,benchmark,report", short), mlcube.parent)
        assert_answered(output, short, root)

    def test_exit_code_comes_through(self, image: str, mlcube: Path, short: Path, root: Caller) -> None:
        probes.give(short, root.uid, root.gid)
        shutil.rmtree(short / "data")
        with root.start(command(mlcube, "docker", "jax", short), mlcube.parent) as process:
            output, _ = process.communicate(timeout=HANG)
        assert process.returncode == 1
        assert "run the task `download` first" in output


class TestSingularity:
    @pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch"))  # test_apptainer.py has them all
    def test_fingerprint_of_the_host(
        self,
        framework: str,
        sif: Path,
        mlcube: Path,
        short: Path,
        caller: Caller,
        poisoned: dict[str, str],
        poisoned_home: Path,
        on_host: Callable[[str], str],
    ) -> None:
        more = poisoned | {"CUDA_VISIBLE_DEVICES": "0,1"}
        with caller.start(command(mlcube, "singularity", framework, short), mlcube.parent, more) as process:
            assert probes.confinement_of_training(process, short) == probes.CONFINED
            output, _ = process.communicate(timeout=HANG)
        assert process.returncode == 0, output
        assert probes.fingerprint_of(output) == on_host(framework)
        assert probes.owners(short) == {(caller.uid, caller.gid)}
        record = probes.experiment_of(short, framework)
        assert record["container"]["engine"] == "apptainer"
        assert record["container"]["image"].startswith("sif:") and len(record["container"]["image"]) == 40
        assert record["environment"]["CUDA_VISIBLE_DEVICES"] == "0,1"

    def test_verify_benchmark_and_report(self, sif: Path, mlcube: Path, short: Path, caller: Caller) -> None:
        ask_little(short)
        output = caller.run(command(mlcube, "singularity", "verify,benchmark,report", short), mlcube.parent)
        assert_answered(output, short, caller)

    @pytest.fixture
    def mirror(self, short: Path) -> Iterator[str]:
        """The data set's files, moved out of the workspace and onto an HTTP server of this machine's."""
        files = short.with_name(f"{short.name}.mirror")
        files.mkdir()
        for path in (short / "data" / "MNIST" / "raw").iterdir():
            (files / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), compresslevel=1))
        shutil.rmtree(short / "data")

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args: object) -> None:
                super().__init__(*args, directory=str(files))  # type: ignore[arg-type]

            def log_message(self, *args: object) -> None:
                """Nothing."""

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()
        shutil.rmtree(files)

    def test_download_alone_has_a_network(
        self, sif: Path, mlcube: Path, short: Path, caller: Caller, mirror: str, on_host: Callable[[str], str]
    ) -> None:
        """Confined to `lo` of its own, `download` could not reach this machine's."""
        configuration = short / "train.yaml"
        text = configuration.read_text()
        before = "    mnist:\n      - https://"
        assert before in text
        configuration.write_text(text.replace(before, f"    mnist:\n      - {mirror}\n      - https://", 1))
        output = caller.run(command(mlcube, "singularity", "download,jax", short), mlcube.parent)
        assert f"from {mirror}" in output
        assert probes.fingerprint_of(output) == on_host("jax")


def test_declares_what_the_project_has() -> None:
    cube = yaml.safe_load((ROOT / "mlcube.yaml").read_text())
    assert list(cube["tasks"]) == ["download", *FRAMEWORKS, "verify", "benchmark", "report"]
    assert cube["docker"]["image"] == f"repro:{repro.__version__}"
    assert cube["docker"]["cpu_args"] == cube["docker"]["gpu_args"]
    assert f"IMAGE       := repro:{repro.__version__}" in (ROOT / "Makefile").read_text()
