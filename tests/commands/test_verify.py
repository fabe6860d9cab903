"""`./run.sh verify` and `./run.sh compare`, on real trainings, with and without a planted difference."""

import contextlib
import json
import os
import re
import subprocess
from pathlib import Path

import psutil
import pytest

from repro.errors import INCONCLUSIVE
from repro.trainers.verify.questions import TRAINER_QUESTIONS
from repro.verify import results
from repro.verify.command_questions import COMMAND_QUESTIONS
from repro.verify.results import Answer
from support.runs import HANG, ROOT, Run, needs, planted, some
from support.waiting import until

pytestmark = pytest.mark.spread

FRAMEWORKS = ("pytorch", "tensorflow", "jax")
STEP, STEPS = 13, 16


def compare(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "run.sh"), "compare", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)


def commands_below(process: int) -> list[list[str]]:
    """The command lines of what a process has started and runs."""
    lines = []
    for child in psutil.Process(process).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended
            lines.append(child.cmdline())
    return lines


def answers(workspace: Path) -> dict[str, Answer]:
    (path,) = workspace.glob("verify/*/results.json")
    return {answer.question: answer for answer in results.read(path).answers}


def step(answer: Answer) -> int | None:
    """The step of the first difference."""
    assert answer.difference
    return answer.difference.step


@pytest.mark.parametrize("framework", some(FRAMEWORKS, "pytorch"))  # trainers/test_inspect.py traces the others
def test_one_planted_bit_is_found(framework: str, run: Run, workspace: Path) -> None:
    options = (f"params.max_steps={STEPS}", "params.trace_steps=1")
    assert run(framework, *options).returncode == 0
    assert run(framework, *options, env=planted(framework, f"{STEP}:conv2.kernel:123")).returncode == 0
    a, b = sorted((workspace / "outputs" / framework).iterdir())
    difference = compare(a, b)
    assert difference.returncode == 3, difference.stderr
    assert f"differs: first seen at step {STEP}, in the weights; equal until step {STEP - 1}" in difference.stdout
    assert "by      `conv2.kernel`: 1 of 5000 elements, up to 1 ulp" in difference.stdout
    moved = re.search(
        r"other bits from step (\d+)", difference.stdout
    )  # at once or later: one bit may round away in a loss
    assert int(moved[1]) > STEP if moved else "loss" not in difference.stdout
    assert "no recorded fact differs" in difference.stdout
    assert compare(a, a).returncode == 0


def test_narrow_names_the_operation(run: Run, workspace: Path) -> None:
    for threads in (1, 2):
        options = (f"params.threads={threads}", "params.max_steps=8", "params.trace_steps=4")
        assert run("pytorch", *options).returncode == 0
    a, b = sorted((workspace / "outputs" / "pytorch").iterdir())
    difference = compare("--narrow", a, b)
    assert difference.returncode == 3, difference.stderr
    assert "  begins  in step 1, with " in difference.stdout
    assert "framework.threads: 1 and 2 (sums are split among threads)" in difference.stdout


NOTHING: dict[str, str | None] = {
    "PATH": "/usr/bin:/bin",
    "CUDA_VISIBLE_DEVICES": "",
}  # neither container runtimes nor GPUs


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(("resume_kill",), marks=pytest.mark.slow),
        pytest.param(("restart_cpu", "resume_kill", "workers", "process"), marks=pytest.mark.slow),
    ],
    ids=["some", "most"],
)
def test_answers(same: tuple[str, ...], run: Run, workspace: Path) -> None:
    """... and results.json, which holds nothing of where it was made."""
    differ = ("seed",)
    asked = ",".join((*same, "restart_gpu", *differ))
    done = run("verify", f"questions={asked}", "frameworks=jax", "verify.steps=10", env=NOTHING)
    assert done.returncode == INCONCLUSIVE, done.stderr  # restart_gpu was asked by its name
    result = answers(workspace)
    assert {name: result[name].answer for name in (*same, *differ)} == dict.fromkeys(same, "same") | dict.fromkeys(
        differ, "differs"
    )
    assert all(result[name].kept is True for name in (*same, *differ))
    assert step(result["seed"]) == 0  # the initial weights are another seed's
    (results,) = workspace.glob("verify/*/results.json")
    for cache in ("DIR/cache1/", "DIR/cache2/"):  # the process that goes on after a kill compiles anew, too
        assert f'"JAX_COMPILATION_CACHE_DIR": "{cache}repro/jax"' in results.read_text()
    assert (result["restart_gpu"].answer, result["restart_gpu"].kept) == ("not asked", None)
    assert result["restart_gpu"].reason == "no NVIDIA GPU"
    assert " promises kept." in done.stdout
    content = json.loads(results.read_text())
    assert content["schema"] == 1
    assert content["runs"]["deterministic/jax/as-configured"]["experiment"]["cpu"] == content["machine"]["cpu"]
    assert str(workspace) not in json.dumps(content["settings"])


@pytest.mark.slow  # a command without a seed is in test_verify_command.py
def test_two_runs_without_a_seed_differ(run: Run, workspace: Path) -> None:
    done = run("verify", "questions=unseeded", "frameworks=jax", "verify.steps=10", env=NOTHING)
    assert done.returncode == 0, done.stderr
    answer = answers(workspace)["unseeded"]
    assert (answer.answer, answer.kept) == ("differs", True)


@pytest.mark.parametrize(
    ("frameworks", "expected"),
    [
        pytest.param(("pytorch", "jax"), {"frameworks": ("same", 2)}, marks=pytest.mark.slow),
        pytest.param(FRAMEWORKS, {"frameworks": ("same", 3), "relay": ("same", 4)}, marks=pytest.mark.slow),
    ],
)
def test_portable_across_frameworks(
    frameworks: tuple[str, ...], expected: dict[str, tuple[str, int]], run: Run, workspace: Path
) -> None:
    for framework in frameworks:
        needs(framework)
    asked = (f"questions={','.join(expected)}", f"frameworks={','.join(frameworks)}")
    done = run("verify", *asked, "numerics=portable", "verify.steps=12")
    assert done.returncode == 0, done.stderr
    result = answers(workspace)
    assert {name: (answer.answer, len(answer.runs)) for name, answer in result.items()} == expected


@pytest.mark.deep
def test_another_environment(run: Run, workspace: Path) -> None:
    asked = ("questions=other", "frameworks=pytorch", "verify.steps=10")
    other = "+verify.others.pytorch='.venv/pytorch/bin/python tests/programs/plant.py'"
    done = run("verify", *asked, other, env={"PLANT": "5:conv1.bias:0"})
    assert done.returncode == 0, done.stderr  # nothing is promised of it
    answer = answers(workspace)["other"]
    assert (answer.answer, answer.kept, step(answer)) == ("differs", None, 5)


def test_broken_promise(run: Run, workspace: Path) -> None:
    done = run(
        "verify", "questions=restart_cpu", "frameworks=pytorch", "verify.steps=10", env=planted("pytorch", "chance")
    )
    assert done.returncode == 3, done.stderr
    answer = answers(workspace)["restart_cpu"]
    assert (answer.answer, answer.promise, answer.kept) == ("differs", "same", False)
    difference = answer.difference
    assert difference and (difference.step, difference.last_equal_step, difference.tensor) == (1, 0, "dense2.bias")
    assert "1 of 1 promise broken." in done.stdout


def test_a_run_that_fails_is_no_answer(run: Run, workspace: Path) -> None:
    done = run(
        "verify", "questions=restart_cpu", "frameworks=pytorch", "verify.steps=10", env=planted("pytorch", "1:none:0")
    )
    assert done.returncode == 1
    answer = answers(workspace)["restart_cpu"]
    assert (answer.answer, answer.kept, answer.runs) == ("not asked", None, [])
    assert "KeyError" in str(answer.reason)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["questions=thread"], "verify.questions=[thread]: must be one or several of all, everything, restart_cpu"),
        (
            ["questions=seed,seed"],
            "verify.questions=[seed,seed]: must be one or several of all, everything, restart_cpu",
        ),
        (["questions="], "verify.questions=[]: must be one or several of all, everything, restart_cpu"),
        (["frameworks=caffe"], "verify.frameworks=[caffe]: must be one or several of pytorch"),
        (["numerics=exact"], "verify.numerics=[exact]: must be one or several of fast"),
        (["verify.steps=1"], "verify.steps=1: must be at least 10"),
        (["verify.step=20"], "did you mean verify.steps?"),
    ],
)
def test_bad_questions(arguments: list[str], said: str, run_here: Run, workspace: Path) -> None:
    done = run_here("verify", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr
    assert not (workspace / "verify").exists()


def test_verify_without_data(run_here: Run, tmp_path: Path) -> None:
    done = run_here("verify", workspace=tmp_path)
    assert done.returncode == 1
    assert "run the task `download` first" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "two runs' folders must be given, not 0"),
        (["a"], 2, "two runs' folders must be given, not 1"),
        (["a", "b"], 2, "a is not the folder of a run"),
        (["--workspace=.", "a", "b"], 2, "unknown option '--workspace=.'"),
        (["--wide", "a", "b"], 2, "unknown option '--wide'"),
    ],
)
def test_bad_folders(arguments: list[str], code: int, said: str) -> None:
    done = compare(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("\n") == 1
    assert said in done.stderr


@pytest.mark.deep
def test_runs_of_two_configurations(run: Run, workspace: Path) -> None:
    for seed in (0, 1):
        assert run("pytorch", "params.max_steps=2", f"params.seed={seed}").returncode == 0
    done = compare(*sorted((workspace / "outputs" / "pytorch").iterdir()))
    assert done.returncode == 2
    assert "params.seed: 0 and 1" in done.stderr


def test_interrupted(interruptible: None, workspace: Path) -> None:
    options = ("questions=restart_cpu,seed", "frameworks=pytorch", "verify.steps=10")
    command = [str(ROOT / "run.sh"), "verify", f"--workspace={workspace}", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        until(
            lambda: any("params.seed=1234567" in one for one in commands_below(process.pid)), process
        )  # the third run
        os.killpg(process.pid, 2)
        process.communicate(timeout=HANG)
    assert process.returncode == 1
    result = answers(workspace)
    assert result["restart_cpu"].answer == "same"
    assert (result["seed"].answer, result["seed"].reason) == ("not asked", "interrupted")


def test_every_question_says_what_it_promises() -> None:
    for all_ in (TRAINER_QUESTIONS, COMMAND_QUESTIONS):
        assert len({question.name for question in all_}) == len(all_)
    for question in TRAINER_QUESTIONS:
        labels = [(change.label, change.framework) for change in (question.base, *question.changes)]
        assert len(set(labels)) == len(labels)
        assert question.promised("fast") == ("differs" if question.control else None)
        if not question.control and question.name != "fast":
            assert question.promised("portable") == "same"
