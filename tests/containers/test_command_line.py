"""Commands that start a container: what is read of their words, what is put among them; a command in an image."""

import os
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from repro.containers.command_line import Addition, Mount, find, mounts, outside, with_added
from repro.containers.image import Place, in_image, moved, program, runtime
from repro.errors import UsageError
from repro.record.injection import SITE, Injection, Portable
from repro.verify.surroundings import places
from support import commands
from support.commands import container


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts a program of this name, and this code, before all others."""
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return partial(commands.program, tmp_path / "bin")


@pytest.mark.parametrize(
    ("text", "image", "inner"),
    [
        ("docker run i", "i", ""),
        ("docker run --rm -it i python x.py --rm", "i", "python x.py --rm"),
        ("docker run -itv /a:/b i x", "i", "x"),
        ("docker run -v/a:/b -e=A=1 -eB=2 -u 1:2 i x", "i", "x"),
        ("docker run --name n --env A=--b --tty=false --shm-size=1g i x", "i", "x"),
        ("docker run --gpus all --ipc=host -- i -x", "i", "-x"),
        ("docker --context c -D --log-level=info container run --rm i x", "i", "x"),
        ("/usr/bin/podman --runtime r run --tls-verify --userns keep-id i x", "i", "x"),
        ("sudo -E docker run i x", "i", "x"),
        ("apptainer exec i.sif x -B", "i.sif", "x -B"),
        ("apptainer -q -c f run -eC --nv -B /a:/b --env A=1 --pwd / i.sif x", "i.sif", "x"),
        ("srun -n 2 singularity run --net --network none docker://i x", "docker://i", "x"),
    ],
)
def test_where_the_image_is(text: str, image: str, inner: str) -> None:
    result = container(text)
    assert (result.image, " ".join(result.inner)) == (image, inner)


def test_flags_that_are_set_and_not() -> None:
    for text, expected in (("-it", True), ("--tty", True), ("-i", False), ("-t=false", False), ("-t --tty=0", False)):
        assert container(f"docker run {text} i x").has("tty") == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "python train.py docker run i",
        "docker",
        "docker ps",
        "docker compose run i",
        "docker run",
        "docker run --rm",
        "docker run -v",
        "docker start i",
        "apptainer build i.sif d",
        "singularity --version",
        "time python docker",
    ],
)
def test_what_starts_no_container(text: str) -> None:
    assert find(text.split()) is None


def test_what_is_added_comes_last_of_the_options() -> None:
    added = Addition((Mount("/h", "/i", False), Mount("/w", "/x")), {"TZ": "a b", "A": ""}, "n", (0, 2), terminal=False)
    options = [
        "--mount",
        "type=bind,source=/h,target=/i,readonly",
        "--mount",
        "type=bind,source=/w,target=/x",
        "--label=repro.run=n",
        "--cpuset-cpus=0,2",
        "--tty=false",
        "--env",
        "TZ=a b",
        "--env",
        "A=",
    ]
    for before, after in (("docker run -t -e TZ=c", "i x"), ("docker run --tty", "-- i x")):
        words = with_added(container(f"{before} {after}"), [added], {"TZ": "c"})
        assert words == [*before.split(), *options, *after.split()]
    assert "--tty=false" not in with_added(container("docker run i"), [added], {})


def test_what_is_added_for_apptainer() -> None:
    added = Addition((Mount("/h", "/i", False), Mount("/w,1:2", "/x")), {"A": "1,2", "B": "x=1,y"}, "n", (0,))
    words = with_added(container("apptainer exec --env A=3 i.sif x"), [added], {})
    assert words == [
        "apptainer",
        "exec",
        "--env",
        "A=3",
        "--bind",
        "/h:/i:ro",
        "--mount",
        'type=bind,"source=/w,1:2",destination=/x',
        "--env",
        "A=1,2",
        "--env",
        '"B=x=1,y"',
        "i.sif",
        "x",
    ]


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {"PYTHONPATH": "/repro-package/inject/site", "XLA_FLAGS": "--a"}),
        ({"PYTHONPATH": "", "XLA_FLAGS": ""}, {"PYTHONPATH": "/repro-package/inject/site"}),
        (
            {"PYTHONPATH": "/b:/c", "XLA_FLAGS": "--b", "TZ": "x"},
            {"PYTHONPATH": "/repro-package/inject/site:/b:/c", "XLA_FLAGS": "--b --a", "TZ": "y"},
        ),
    ],
)
def test_ours_is_joined_with_what_is_there(own: dict[str, str], expected: dict[str, str]) -> None:
    added = [
        Injection(every=3, keep=True, portable=Portable(("a", "b"))).addition(Path("/r")),
        Addition((), {"XLA_FLAGS": "--a", "TZ": "y"}),
    ]
    words = with_added(container("docker run i"), added, own)
    given = dict(word.split("=", 1) for option, word in pairwise(words) if option == "--env")
    assert {name: given[name] for name in expected} == expected
    assert {name: given[name] for name in given if name.startswith("REPRO_")} == {
        "REPRO_OBSERVE": "/repro-record",
        "REPRO_OBSERVE_EVERY": "3",
        "REPRO_OBSERVE_KEEP": "1",
        "REPRO_PORTABLE": "/repro-record/portable",
        "REPRO_PORTABLE_ALLOW": "a,b",
        "REPRO_PORTABLE_PRECISION": "high",
    }
    mounted = [word.split(",")[1:] for word in words if word.startswith("type=bind")]
    assert mounted == [
        [f"source={SITE.parents[1]}", "target=/repro-package", "readonly"],
        ["source=/r/steps", "target=/repro-record/steps"],
        ["source=/r/kept", "target=/repro-record/kept"],
        ["source=/r/portable", "target=/repro-record/portable"],
    ]


def test_paths_inside_and_outside() -> None:
    docker = container(
        "docker run -v /h/a:/a:ro -v named:/n -v /anonymous --mount type=bind,src=/h/b,dst=/a/b -w /a i x"
    )
    assert mounts(docker) == [Mount("/h/a", "/a"), Mount("/h/b", "/a/b")]
    assert [outside(docker, word) for word in ("x.py", "/a/y", "b/z", "/a/b", "../q", "/ab")] == [
        "/h/a/x.py",
        "/h/a/y",
        "/h/b/z",
        "/h/b",
        "../q",
        "/ab",
    ]
    apptainer = container("apptainer exec -B /h/a:/a:ro,/h/c --pwd /a i.sif x")
    assert [outside(apptainer, word) for word in ("x.py", "/h/c/d")] == ["/h/a/x.py", "/h/c/d"]


def test_files_are_looked_for_in_what_is_mounted(tmp_path: Path) -> None:
    words = ["docker", "run", "-v", f"{tmp_path}:/a", "-v", "{run}:/b", "-v", f"{tmp_path}/none:/c", "i"]
    assert places(words) == [Path.cwd(), tmp_path]
    assert places(["python", "x.py"]) == [Path.cwd()]


# --- an image in the place of the host ------------------------------------------------------------------------------

PLACE = Place(Path("/work"), Path("/work/r"), (7, 8), {"OMP_NUM_THREADS": "1"}, gpus=False)


def test_a_command_in_a_docker_image() -> None:
    assert in_image(["python", "x.py", "--a"], "i", PLACE, "docker") == [
        "docker",
        "run",
        "--rm",
        "--init",
        "--network=none",
        "--user=7:8",
        "--shm-size=1g",
        "--security-opt=no-new-privileges",
        "--env=HOME=/tmp",
        "--env=USER=repro",
        "--env=LOGNAME=repro",
        "--workdir=/work",
        "--entrypoint=python",
        "--mount",
        "type=bind,source=/work,target=/work",
        "--env",
        "OMP_NUM_THREADS=1",
        "i",
        "x.py",
        "--a",
    ]


def test_a_command_in_a_file_of_apptainer() -> None:
    apart = Place(Path("/work"), Path("/else/r"), (7, 8), {}, gpus=True)
    assert in_image(["python", "x.py"], "/i.sif", apart, "apptainer") == [
        "apptainer",
        "exec",
        "--containall",
        "--net",
        "--network=none",
        "--nv",
        "--pwd=/work",
        "--bind",
        "/work:/work",
        "--bind",
        "/else/r:/else/r",
        "/i.sif",
        "python",
        "x.py",
    ]


def test_a_program_is_the_images_own(tmp_path: Path) -> None:
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    for word, expected in (
        ("python", "python"),
        ("/usr/bin/python3", "python3"),
        ("./train.sh", "./train.sh"),
        ("venv/bin/torchrun", "torchrun"),
        (f"{tmp_path}/venv/bin/python", "python"),
    ):
        assert program(word, tmp_path) == expected


def test_python_has_another_name_in_the_image(stand_in: Callable[[str, str], None]) -> None:
    stand_in(
        "docker", "print('/usr/bin/python3'); assert words[:4] == ['run', '--rm', '--network=none', '--entrypoint=sh']"
    )
    assert "--entrypoint=/usr/bin/python3" in moved(["/x/python3.12", "a.py"], "i", PLACE, "docker")
    stand_in("docker", "sys.exit(127)")
    assert "--entrypoint=python3.12" in moved(["/x/python3.12", "a.py"], "i", PLACE, "docker")


def test_the_engine_of_an_image(stand_in: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"there is no such file|neither apptainer nor"):
        runtime("no.sif")
    stand_in("podman", "")
    monkeypatch.setenv("PATH", os.environ["PATH"].split(os.pathsep)[0])
    assert runtime("i") == "podman"
    with pytest.raises(UsageError, match=r"--image i\.sif: neither apptainer nor singularity is installed"):
        runtime("i.sif")
