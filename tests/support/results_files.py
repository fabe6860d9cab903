"""Results as `verify` would write them.

Numbers are made up, but what follows from what is as in life.
"""

import hashlib
import math
from typing import Any

import msgspec

from repro.structs import checksum, converted
from repro.trainers.loop import config
from repro.verify.questions import AnswerWord, Promise, kept
from repro.verify.results import (
    KIND,
    Answer,
    Cause,
    Cpu,
    FirstDifference,
    GrowthPoint,
    Machine,
    MetricsRow,
    Results,
    Run,
    Settings,
)

Json = dict[str, Any]

FRAMEWORKS = {"pytorch": ("PyTorch", "2.15.0"), "tensorflow": ("TensorFlow", "2.21.0"), "jax": ("JAX", "0.10.2")}
SECONDS_PER_STEP = {"pytorch": 0.003, "tensorflow": 0.0025, "jax": 0.0028}
# Question, title, the labels of the runs beside the one as configured.
QUESTIONS: tuple[tuple[str, str, list[str]], ...] = (
    ("restart_cpu", "Restart on the CPU", ["again"]),
    ("resume_kill", "Resume in mid-epoch after SIGKILL", ["killed in mid-epoch, resumed"]),
    ("workers", "Number of loader workers", ["1 worker", "3 workers"]),
    ("threads", "Number of threads", ["1 thread", "4 threads"]),
    ("engines", "Host, Docker, Apptainer", []),
    ("seed", "Control: another seed", ["another seed"]),
)
TOGETHER = ("frameworks", "The three frameworks against one another")
# Where it is not "same".
PROMISES: dict[tuple[str, str], Promise] = {
    ("threads", "deterministic"): None,
    ("frameworks", "deterministic"): None,
    ("seed", "deterministic"): "differs",
    ("seed", "portable"): "differs",
}


def sha256(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def run(task: str, numerics: str, label: str, weights: str, steps: int, **params: int) -> Run:
    """A run that was done. Runs of equal `weights` have one fingerprint and one loss curve."""
    name, version = FRAMEWORKS[task]
    fingerprint, offset = sha256(weights), int(sha256(weights)[7:11], 16) * 1e-9
    loss_steps = list(range(steps // 10, steps + 1, steps // 10))
    settings = vars(config.Params()) | {"numerics": numerics, "max_steps": steps} | params
    row = MetricsRow(
        epoch=1,
        step=steps,
        train_loss=0.9,
        test_loss=0.4,
        test_accuracy=0.88,
        train_seconds=steps * SECONDS_PER_STEP[task],
        test_seconds=0.3,
        fingerprint=fingerprint,
    )
    return Run(
        task=task,
        numerics=numerics,
        label=label,
        command=f"./run.sh {task} --workspace=DIR params.numerics={numerics} params.max_steps={steps}",
        status="done",
        steps=steps,
        seconds=6.1,
        fingerprint=fingerprint,
        evaluation=f"{(0.4 + offset).hex()} 0.88",
        losses=[2.3 * math.exp(-step / (0.6 * steps)) + 0.2 + offset * step for step in loss_steps],
        loss_steps=loss_steps,
        metrics=[row],
        experiment={
            "task": task,
            "config": {"params": settings, "data": {"dataset": "mnist"}, "environment": {}},
            "framework": {
                "framework": name,
                "version": version,
                "device": "cpu",
                "device_name": None,
                "threads": settings["threads"],
            },
            "sha256": {"final_weights": fingerprint},
        },
    )


def answer(question: str, title: str, framework: str, numerics: str, runs: dict[str, Run]) -> Answer:
    """The answer that follows from runs: `not asked` from fewer than two."""
    promise = PROMISES.get((question, numerics), "same")
    word: AnswerWord = "not asked"
    if len(runs) > 1:
        word = "same" if len({run.fingerprint for run in runs.values()}) == 1 else "differs"
    return Answer(
        question=question,
        title=title,
        framework=framework,
        numerics=numerics,
        promise=promise,
        answer=word,
        kept=kept(promise, word),
        control=question == "seed",
        evidence="fingerprint",
        reason="Docker is not installed; Apptainer is not installed" if question == "engines" else None,
        runs=list(runs) if word != "not asked" else [],
        difference=difference(question) if word == "differs" else None,
    )


def difference(question: str) -> FirstDifference:
    """Another seed diverges at once, all else at step 30 and by little."""
    of_seed = question == "seed"
    step, size = (0, 1.4) if of_seed else (30, 6e-8)
    cause = Cause("framework.threads", 2, 1, "sums are split among threads")
    if of_seed:
        cause = Cause("sha256.initial_weights", sha256("0"), sha256("1"), "other initial weights")
    growth = [
        GrowthPoint(at, size if of_seed else size * 1.09 ** (at - step), at - step) for at in range(step, 101, 10)
    ]
    return FirstDifference(
        elements=3,
        size=250,
        ulps=2,
        relative=size,
        epoch=1,
        step=step,
        last_equal_step=None if of_seed else step - 10,
        tensor="conv1.kernel",
        growth=growth if of_seed else [GrowthPoint(step - 10, 0.0, 0), *growth],
        causes=[cause, Cause("cpu.usable", 2, 1, "a library may size its thread pool by it")],
    )


def results(
    *numerics: str,
    model: str = "Imaginary 9000",
    salt: str = "",
    steps: int = 100,
    broken: tuple[str, str, str] | None = None,
) -> Results:
    """The results of `verify`; with another salt, other bits. `broken`: numerics, framework and question that fail."""
    numerics = numerics or ("deterministic", "portable")
    runs: dict[str, Run] = {}
    answers = []
    for kind in numerics:
        for question, title, labels in QUESTIONS:
            for framework in FRAMEWORKS:
                names = {}
                for label in ["as configured", *labels]:
                    threads = int(label[0]) if "thread" in label else 2
                    weights = f"{salt} {framework} {steps}" if kind == "deterministic" else f"{kind} {steps}"
                    if label == "another seed" or ((kind, framework, question) == broken and label in labels):
                        weights += label
                    elif kind == "deterministic" and framework != "jax":
                        weights += f" {threads} threads"
                    name = f"{kind}/{framework}/{label.replace(' ', '-')}"
                    seed = 1234567 if label == "another seed" else 0
                    names[name] = runs[name] = run(framework, kind, label, weights, steps, threads=threads, seed=seed)
                answers.append(answer(question, title, framework, kind, names))
        baselines = {name: run for name, run in runs.items() if (run.numerics, run.label) == (kind, "as configured")}
        answers.append(answer(*TOGETHER, "all", kind, baselines))
    cpu = Cpu("x86_64", "ImaginaryCPU", model, "avx512f", cores=2, logical=2, usable=2)
    return Results(
        schema=KIND.schema,
        created="2026-11-21T14:00:00+00:00",
        seconds=312.5,
        machine=Machine(cpu, [], "Linux-6.1.0-x86_64-with-glibc2.36"),
        settings=Settings(steps, ["all"], list(FRAMEWORKS), list(numerics), []),
        runs=runs,
        answers=answers,
    )


def plain(**options: Any) -> Json:
    """The same as JSON, without a checksum."""
    content: Json = msgspec.to_builtins(results(**options))
    del content["seal"]
    return content


def sealed(content: Results) -> Results:
    """The same with its checksum, as if it had been written and read."""
    return converted(msgspec.to_builtins(content) | {"seal": checksum(msgspec.to_builtins(content))}, Results)
