"""The Docker image: the host's fingerprint, confined, for any user, with a poisoned environment."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from repro.frameworks import FRAMEWORKS
from support import probes
from support.runs import HANG, ROOT

ANYBODY = (4242, 4242)  # neither the image's own user nor one that the host knows


def docker_run(image: str, workspace: Path, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """`docker run` as the README gives it. The output is one stream."""
    uid, gid = ANYBODY if os.getuid() == 0 else (os.getuid(), os.getgid())
    command = [
        "docker",
        "run",
        "--rm",
        "--init",
        f"--user={uid}:{gid}",
        "--network=none",
        "--read-only",
        "--tmpfs=/tmp",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        f"--volume={workspace}:/workspace",
        *options,
        image,
        *arguments,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_fingerprint_of_the_host(
    framework: str, image: str, short: Path, poison: Path, on_host: Callable[[str], str]
) -> None:
    if os.getuid() == 0:
        probes.give(short, *ANYBODY)
    poisoned = [f"--env={name}={value.replace('POISON', '/poison')}" for name, value in probes.POISONED.items()]
    home = [f"--volume={poison}:/poison:ro", f"--volume={poison}:/home/.local/lib/python3.11/site-packages:ro"]
    options = (*poisoned, *home, "--env=HOME=/home")
    with docker_run(image, short, framework, "--workspace=/workspace", options=options) as process:
        assert probes.confinement_of_training(process, short) == probes.CONFINED
        output, _ = process.communicate(timeout=HANG)
    assert process.returncode == 0, output
    assert probes.fingerprint_of(output) == on_host(framework)
    assert len(probes.owners(short)) == 1
    record = probes.experiment_of(short, framework)
    assert record["ignored"].keys() >= probes.POISONED.keys()
    assert record["container"]["engine"] == "docker"
    assert probes.COMMIT.startswith(record["source"]["commit"])


def test_errors_and_exit_codes_come_through(image: str, short: Path) -> None:
    if os.getuid() == 0:
        probes.give(short, *ANYBODY)
    for arguments, exit_code, message in (
        (("pytroch", "--workspace=/workspace"), 2, "error: unknown command 'pytroch'"),
        (("jax", "--workspace=/nowhere"), 2, "error: jax: --workspace=/nowhere is not a folder"),
        (("jax", "--workspace=/workspace", "params.seeds=1"), 2, "params.seed"),
        (("jax", "--workspace=/workspace", "output.data_path=/nowhere"), 1, "run the task `download` first"),
    ):
        with docker_run(image, short, *arguments) as process:
            output, _ = process.communicate(timeout=HANG)
        assert (process.returncode, output.count("\n")) == (exit_code, 1), output
        assert message in output


def test_holds_what_the_allow_list_names_and_no_more(image: str) -> None:
    files = {line.split("  ./")[1] for line in probes.listing_of_image(image) if "  ./" in line}
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    matched = {path for pattern in allowed for path in ROOT.glob(pattern)}
    expected = {path for result in matched for path in ([result] if result.is_file() else result.rglob("*"))}
    names = {str(path.relative_to(ROOT)) for path in expected if path.is_file() and path.suffix != ".pyc"}
    assert files == names | {"COMMIT"}


def test_editing_the_source_installs_nothing_again(image: str, source: Path) -> None:
    module = source / "repro" / "__init__.py"
    before = module.read_text()
    module.write_text(before + "# edited\n")
    # Nothing is kept but the build's cache.
    command = ["docker", "build", "--progress=plain", "--output=type=cacheonly", "--build-arg=ACCELERATOR=cpu", "."]
    steps = subprocess.check_output(command, cwd=source, stderr=subprocess.STDOUT, text=True)
    module.write_text(before)
    installing = next(line.split(" ")[0] for line in steps.splitlines() if "requirements/install.sh" in line)
    assert f"{installing} CACHED" in steps


def test_labels(image: str) -> None:
    template = '{{index .Config.Labels "org.opencontainers.image.revision"}} {{.Config.User}}'
    inspected = subprocess.check_output(["docker", "image", "inspect", "--format", template, image], text=True)
    assert inspected.split() == [probes.COMMIT, "1000:1000"]
