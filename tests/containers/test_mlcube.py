"""The command of an MLCube's task is the one that MLCube itself would call; what is wrong with a cube is one line."""

import json
import os
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from repro.containers import mlcube
from repro.containers.command_line import find
from repro.errors import UsageError
from support import commands
from support.runs import HANG, ROOT

CUBE = """
name: a cube
platform: {accelerator_count: 0}
docker:
  image: ${name_of.image}
  cpu_args: --rm --env WHO=$(printf 'a b' | tr ' ' _) --env "TWO=c d"
  gpu_args: --gpus all
  env_args: {THREADS: 2}
  --network: none
singularity: {image: cube.sif, image_dir: "${runtime.root}/images", run_args: --nv}
name_of: {image: "repro-no-such-image:1"}
tasks:
  train:
    parameters:
      inputs:
        data: {type: directory, default: data}
        config: {type: file, default: train.yaml}
        start: {type: directory, default: model}
      outputs:
        model: {type: directory, default: model}
        log: {type: file, default: logs/log.txt}
        top: {type: file, default: top.txt}
  files:
    parameters:
      inputs: {a: {type: file, default: x/a.txt, opts: ro}, b: {type: file, default: x/b.txt}, there: train.yaml}
  rights:
    parameters:
      inputs: {a: {type: file, default: x/a, opts: rw}, b: {type: file, default: x/b, opts: ro}}
      outputs: {elsewhere: {type: directory, default: "$ELSEWHERE/out", opts: rw}}
  short:
    parameters: {inputs: {data: data/}, outputs: {results: {type: directory}, whole: {type: directory, default: ""}}}
  named: {entrypoint: python -m train --fast, parameters: {outputs: {out: out/}}}
  single: {entrypoint: train, parameters: {outputs: {out: out/}}}
  bare:
"""
TASKS = ("train", "files", "rights", "short", "named", "single", "bare")


@pytest.fixture
def cube(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ELSEWHERE", str(tmp_path / "else where"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "cube"
    (folder / "workspace").mkdir(parents=True)
    (folder / "images").mkdir()
    (folder / "images" / "cube.sif").touch()
    (folder / "workspace" / "train.yaml").touch()
    (folder / "mlcube.yaml").write_text(CUBE)
    return folder


@pytest.mark.parametrize("platform", mlcube.PLATFORMS)
def test_words_are_those_of_mlcube_itself(
    platform: str, cube: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = ROOT / ".venv" / "mlcube" / "bin" / "mlcube"
    if not tool.exists():
        pytest.skip("no environment .venv/mlcube; make it with: requirements/install.sh mlcube")
    monkeypatch.setenv("ELSEWHERE", str(tmp_path / "elsewhere"))  # it splits paths at spaces
    monkeypatch.setenv("MLCUBE_SYSTEM_SETTINGS", str(tmp_path / "settings.yaml"))
    said = tmp_path / "said"
    commands.program(tmp_path / "bin", platform, f"open({str(said)!r}, 'a').write(json.dumps(words) + '\\n')")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    ours = [mlcube.words(mlcube.read(cube), task, platform) for task in TASKS]
    command = [str(tool), "run", f"--mlcube={cube}", f"--platform={platform}", f"--task={','.join(TASKS)}"]
    subprocess.run(command, capture_output=True, check=True, timeout=HANG)
    lines = [json.loads(line) for line in said.read_text().splitlines()]
    assert [[platform, *words] for words in lines if words[0] in ("run", "exec")] == ours


def words(cube: Path, task: str = "train", platform: str = "docker", apart: bool = True, **given: str) -> list[str]:
    return mlcube.words(mlcube.read(cube), task, platform, given, apart)


def volumes(results: list[str]) -> list[str]:
    return [place for option, place in pairwise(results) if option in ("--volume", "--bind")]


def test_what_is_put_out_goes_to_the_runs_own_folder(cube: Path) -> None:
    (cube / "workspace" / "data").mkdir()
    result, place = words(cube), cube / "workspace"
    assert volumes(result) == [
        f"{place}/data:/mlcube_io0",
        f"{place}:/mlcube_io1",
        f"{place}/model:/mlcube_io2",
        "{run}/model:/mlcube_io3",
        "{run}/logs:/mlcube_io4",
        "{run}:/mlcube_io5",
    ]
    assert result[result.index("repro-no-such-image:1") + 1 :] == [
        "train",
        "--data=/mlcube_io0",
        "--config=/mlcube_io1/train.yaml",
        "--start=/mlcube_io2",
        "--model=/mlcube_io3",
        "--log=/mlcube_io4/log.txt",
        "--top=/mlcube_io5/top.txt",
    ]
    assert (place / "model").is_dir() and not (place / "logs").exists() and not Path("{run}").exists()
    assert volumes(words(cube, "rights"))[1:] == ["{run}/elsewhere:/mlcube_io1:rw"]
    assert volumes(words(cube, "short")) == [
        f"{place}/data:/mlcube_io0",
        "{run}/results:/mlcube_io1",
        "{run}:/mlcube_io2",
    ]


def test_parameters_that_are_given(cube: Path, tmp_path: Path) -> None:
    result = words(cube, data="{run}/data", config=f"{tmp_path}/b c/my.yaml", model="kept", log="{run}/l/x.txt")
    place = cube / "workspace"
    assert volumes(result) == [
        "{run}/data:/mlcube_io0",
        f"{tmp_path}/b c:/mlcube_io1",
        f"{place}/model:/mlcube_io2",
        f"{place}/kept:/mlcube_io3",
        "{run}/l:/mlcube_io4",
        "{run}:/mlcube_io5",
    ]
    assert "--config=/mlcube_io1/my.yaml" in result and "--log=/mlcube_io4/x.txt" in result


def test_the_words_are_those_of_a_container(cube: Path) -> None:
    for platform, image in (("docker", "repro-no-such-image:1"), ("singularity", f"{cube}/images/cube.sif")):
        result = find(words(cube, platform=platform))
        assert result and result.image == image and result.inner[0] == "train"


def test_options_are_a_shells(cube: Path) -> None:
    result = words(cube)
    assert result[:10] == [
        "docker",
        "run",
        "--rm",
        "--env",
        "WHO=a_b",
        "--env",
        "TWO=c d",
        "--network=none",
        "-e",
        "THREADS=2",
    ]
    path = cube / "mlcube.yaml"
    path.write_text(path.read_text().replace("accelerator_count: 0", "accelerator_count: 2"))
    assert words(cube)[:5] == ["docker", "run", "--gpus", "all", "--network=none"]


def test_another_workspace_or_file(cube: Path, tmp_path: Path) -> None:
    other = cube / "other.yaml"
    (cube / "mlcube.yaml").rename(other)
    read = mlcube.read(other, tmp_path / "w")
    assert volumes(mlcube.words(read, "short", "docker"))[0] == f"{tmp_path}/w/data:/mlcube_io0"
    assert (tmp_path / "w" / "results").is_dir()


def test_a_cube_without_singularity_takes_the_name_of_docker(cube: Path) -> None:
    path = cube / "mlcube.yaml"
    path.write_text("docker: {image: a/b-c:0.1}\ntasks: {t: {}}\n")
    image = cube / "workspace" / ".image" / "abc01.sif"
    with pytest.raises(UsageError, match=r"abc01\.sif does not exist; make it: mlcube configure --mlcube="):
        words(cube, "t", "singularity")
    image.parent.mkdir()
    image.touch()
    assert words(cube, "t", "singularity") == ["singularity", "run", str(image), "t"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "mlcube.yaml: No such file or directory; --mlcube names the folder of a mlcube.yaml"),
        (b"\xff\xfe\x00", "it is not text"),
        ("a: [", "is not YAML: while parsing"),
        ("- a", "is not an MLCube: it must hold a mapping with `tasks`"),
        ("", "is not an MLCube"),
        ("docker: {image: i}", "it has no tasks"),
        ("tasks: [t]", "tasks must be a mapping"),
        ("docker: {image: i}\ntasks: {a: {}, b: {}}", "it has no task 't'; --task must be one of a, b"),
        ("tasks: {t: }", "it names no image for Docker: docker.image is missing"),
        ("docker: i\ntasks: {t: }", "docker must be a mapping"),
        ("docker: {image: i}\ntasks: {t: x}", "tasks.t must be a mapping"),
        ("docker: {image: i}\ntasks: {t: {parameters: {inputs: {a: 5}}}}", "parameter 'a' must be a mapping"),
        (
            "docker: {image: i}\ntasks: {t: {parameters: {inputs: {a: {default: 5}}}}}",
            "of parameter 'a' is 5; it must be a",
        ),
        ("docker: {image: i}\ntasks: {t: {parameters: {inputs: {a: none.txt}}}}", "is of type 'unknown', and "),
        (
            "docker: {image: i}\ntasks: {t: {parameters: {outputs: {a: none.txt}}}}",
            "does not exist: give it a type",
        ),
        ("docker: {image: i}\ntasks: {t: {parameters: {inputs: {a: {type: int}}}}}", "'a' is of type 'int'"),
        (
            "docker: {image: i}\ntasks: {t: {parameters: {inputs: {a: {type: file, opts: wx}}}}}",
            "opts 'wx'; they must be ro",
        ),
        ("docker: {image: '${nothing}'}\ntasks: {t: }", "Interpolation key 'nothing' not found"),
        ('docker: {image: i, cpu_args: "--env \'A"}\ntasks: {t: }', "a shell cannot read its options"),
    ],
)
def test_bad_input_is_one_line(content: str | bytes | None, said: str, tmp_path: Path) -> None:
    path = tmp_path / "mlcube.yaml"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UsageError) as caught:
        words(tmp_path, "t")
    assert str(caught.value).startswith("mlcube: ") and said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_parameter_that_there_is_not(cube: Path) -> None:
    with pytest.raises(UsageError, match="task 'train' has no parameter 'modle'; its parameters: data, config, start"):
        words(cube, modle="x")


def test_no_image_for_singularity(tmp_path: Path) -> None:
    (tmp_path / "mlcube.yaml").write_text("tasks: {t: }")
    with pytest.raises(UsageError, match=r"neither singularity\.image nor docker\.image is there"):
        words(tmp_path, "t", "singularity")
