"""The Singularity image, built and run by a plain user: the host's fingerprint, and the files of the Docker image."""

from collections.abc import Callable
from pathlib import Path

import pytest

from repro.frameworks import FRAMEWORKS
from support import probes
from support.probes import Caller
from support.runs import HANG


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_fingerprint_of_the_host(
    framework: str,
    sif: Path,
    short: Path,
    caller: Caller,
    poisoned: dict[str, str],
    poisoned_home: Path,
    on_host: Callable[[str], str],
) -> None:
    # Apptainer hands these on even with --containall.
    more = poisoned | {f"APPTAINERENV_{name}": value for name, value in poisoned.items()}
    command = [
        "singularity",
        "run",
        "--containall",
        "--pwd",
        "/",
        "--nv",
        "--net",
        "--network",
        "none",
        "--bind",
        f"{short}:/workspace",
        str(sif),
        framework,
        "--workspace=/workspace",
    ]
    with caller.start(command, poisoned_home, more) as process:
        assert probes.confinement_of_training(process, short) == probes.CONFINED
        output, _ = process.communicate(timeout=HANG)
    assert process.returncode == 0, output
    assert probes.fingerprint_of(output) == on_host(framework)
    assert probes.owners(short) == {(caller.uid, caller.gid)}
    record = probes.experiment_of(short, framework)
    assert record["ignored"].keys() >= probes.POISONED.keys()
    assert record["container"]["engine"] == "apptainer"
    assert probes.COMMIT.startswith(record["source"]["commit"])


def test_even_the_loosest_call_keeps_the_callers_environment_out(
    sif: Path, short: Path, caller: Caller, poisoned: dict[str, str], poisoned_home: Path, on_host: Callable[[str], str]
) -> None:
    """Without any option, home, ~/.local and every variable are inside; run.sh alone keeps them from the run."""
    command = ["singularity", "run", "--bind", f"{short}:/workspace", str(sif), "jax", "--workspace=/workspace"]
    assert probes.fingerprint_of(caller.run(command, poisoned_home, poisoned)) == on_host("jax")


def test_holds_the_files_and_packages_of_the_docker_image(sif: Path, image: str, caller: Caller) -> None:
    command = ["singularity", "exec", "--containall", "--pwd", "/", str(sif), "sh", "-c", probes.LISTING]
    lines = caller.run(command, Path("/")).splitlines()
    listed = [line for line in lines if line.startswith(".venv") or "  ./" in line]  # the engine has words of its own
    assert len(listed) > 50
    assert sorted(listed) == sorted(probes.listing_of_image(image))


def test_help_and_labels(sif: Path, caller: Caller) -> None:
    assert "fingerprint" in caller.run(["singularity", "run-help", str(sif)], Path("/"))
    labels = caller.run(["singularity", "inspect", "--labels", str(sif)], Path("/"))
    assert f"org.opencontainers.image.revision: {probes.COMMIT}" in labels
