"""Results as `verify` would write them.

Numbers are made up, but what follows from what is as in life.
"""

import hashlib
import math
from typing import Any

import msgspec

from repro.run import config
from repro.structs import checksum, converted
from repro.verify.results import KIND, Results

Json = dict[str, Any]

FRAMEWORKS = {"pytorch": ("PyTorch", "2.15.0"), "tensorflow": ("TensorFlow", "2.21.0"), "jax": ("JAX", "0.10.2")}
# Question, title, the labels of the runs beside the one as configured.
QUESTIONS: tuple[tuple[str, str, list[str]], ...] = (
    ("restart_cpu", "Restart on the CPU", ["again"]),
    ("resume_kill", "Resume in mid-epoch after SIGKILL", ["killed in mid-epoch, resumed"]),
    ("workers", "Number of loader workers", ["1 worker", "3 workers"]),
    ("threads", "Number of threads", ["1 thread", "4 threads"]),
    ("engines", "Host, Docker, Apptainer", []),
    ("seed", "Control: another seed", ["another seed"]),
)
# Where it is not "same".
PROMISES: dict[tuple[str, str], str | None] = {
    ("threads", "deterministic"): None,
    ("frameworks", "deterministic"): None,
    ("seed", "deterministic"): "differs",
    ("seed", "portable"): "differs",
}


def sha256(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def run(task: str, numerics: str, label: str = "as configured", weights: str = "", steps: int = 100, **params) -> Json:
    """A run that was done. Runs of equal `weights` have one fingerprint and one loss curve."""
    name, version = FRAMEWORKS[task]
    fingerprint, offset = sha256(weights), int(sha256(weights)[7:11], 16) * 1e-9
    loss_steps = list(range(steps // 10, steps + 1, steps // 10))
    losses = [2.3 * math.exp(-step / (0.6 * steps)) + 0.2 + offset * step for step in loss_steps]
    seconds = steps * {"pytorch": 0.003, "tensorflow": 0.0025, "jax": 0.0028}[task]
    row = {"epoch": 1, "step": steps, "train_loss": 0.9, "test_loss": 0.4, "test_accuracy": 0.88,
           "train_seconds": seconds, "test_seconds": 0.3, "fingerprint": fingerprint}  # fmt: skip
    settings = vars(config.Params()) | {"numerics": numerics, "max_steps": steps} | params
    return {
        "task": task, "numerics": numerics, "label": label, "status": "done", "error": None,
        "command": f"./run.sh {task} --workspace=DIR params.numerics={numerics} params.max_steps={steps}",
        "fingerprint": fingerprint, "evaluation": f"{(0.4 + offset).hex()} 0.88", "seconds": 6.1, "steps": steps,
        "losses": losses, "loss_steps": loss_steps, "metrics": [row],
        "experiment": {
            "task": task, "config": {"params": settings, "data": {"dataset": "mnist"}, "environment": {}},
            "framework": {"framework": name, "version": version, "device": "cpu", "device_name": None,
                          "threads": settings["threads"]},
            "sha256": {"final_weights": fingerprint},
        },
    }  # fmt: skip


def answer(question: str, title: str, framework: str, numerics: str, promise: str | None, runs: dict[str, Json],
           evidence: str = "fingerprint", reason: str | None = None) -> Json:  # fmt: skip
    """What follows from runs: `not asked` from fewer than two."""
    different = len({run[evidence] for run in runs.values()})
    said = "not asked" if len(runs) < 2 else "same" if different == 1 else "differs"
    return {
        "question": question, "title": title, "framework": framework, "numerics": numerics, "promise": promise,
        "answer": said, "kept": None if promise is None or said == "not asked" else promise == said,
        "control": question == "seed", "evidence": evidence, "reason": reason,
        "runs": list(runs) if said != "not asked" else [],
        "difference": difference(question) if said == "differs" and evidence == "fingerprint" else None,
    }  # fmt: skip


def difference(question: str) -> Json:
    """Another seed parts at once, all else at step 30 and by little."""
    step, size, last = (0, 1.4, 100) if question == "seed" else (30, 6e-8, 100)
    cause = {"fact": "framework.threads", "a": 2, "b": 1, "why": "sums are split among threads"}
    if question == "seed":
        cause = {"fact": "sha256.initial_weights", "a": sha256("0"), "b": sha256("1"), "why": "other initial weights"}
    growth = [
        {"step": at, "relative": size * 1.09 ** (at - step) if size < 1 else size, "ulps": at - step}
        for at in range(step, last + 1, 10)
    ]
    return {
        "epoch": 1, "step": step, "last_equal_step": step - 10 if step else None,
        "tensor": "conv1.kernel", "elements": 3, "size": 250, "ulps": 2, "relative": size,
        "growth": [*([{"step": step - 10, "relative": 0.0, "ulps": 0}] if step else []), *growth],
        "causes": [cause, {"fact": "cpu.usable", "a": 2, "b": 1, "why": "a library may size its thread pool by it"}],
        "operation": None,
    }  # fmt: skip


def sealed(content: Results) -> Results:
    """The same with its checksum, as if it had been read."""
    return msgspec.structs.replace(content, seal=checksum(msgspec.to_builtins(content)))


def results(*numerics: str, **options: Any) -> Results:
    """The results of `verify`; arguments as plain() has them."""
    return converted(plain(*numerics, **options), Results)


def plain(
    *numerics: str,
    model: str = "Imaginary 9000",
    salt: str = "",
    steps: int = 100,
    broken: tuple[str, str, str] | None = None,
) -> Json:
    """The same as JSON; with another salt, other bits. `broken`: the numerics, framework and question that fail."""
    numerics = numerics or ("deterministic", "portable")
    runs: dict[str, Json] = {}
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
                promise = PROMISES.get((question, kind), "same")
                reason = "Docker is not installed; Apptainer is not installed" if question == "engines" else None
                answers.append(answer(question, title, framework, kind, promise, names, reason=reason))
        bases = {name: run for name, run in runs.items() if name.startswith(kind) and run["label"] == "as configured"}
        promise = PROMISES.get(("frameworks", kind), "same")
        answers.append(answer("frameworks", "The three frameworks against one another", "all", kind, promise, bases))
    cpu = {"architecture": "x86_64", "vendor": "ImaginaryCPU", "model": model, "instruction_set": "avx512f",
           "cores": 2, "logical": 2, "usable": 2}  # fmt: skip
    return {
        "schema": KIND.schema, "created": "2026-11-21T14:00:00+00:00", "seconds": 312.5,
        "machine": {"cpu": cpu, "gpu": [], "platform": "Linux-6.1.0-x86_64-with-glibc2.36", "name": None},
        "settings": {"steps": steps, "questions": ["all"], "frameworks": list(FRAMEWORKS), "numerics": list(numerics),
                     "overrides": []},
        "runs": runs, "answers": answers,
    }  # fmt: skip
