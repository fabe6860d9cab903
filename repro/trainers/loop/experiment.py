"""experiment.json: all that decides a run's bits."""

import hashlib
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from repro.files import write_json
from repro.machine import facts as machine
from repro.machine import variables
from repro.trainers.loop import randomness
from repro.trainers.loop.config import Config
from repro.trainers.loop.data import Dataset


def record(
    task: str, config: Config, facts: dict[str, object], dataset: Dataset, epochs: int, initial: str
) -> dict[str, Any]:
    """The record of a run that starts, for experiment.json. `initial` is the fingerprint of the initial weights."""
    from threadpoolctl import threadpool_info  # of the extra [trainers]; other functions of this file do without

    return {
        "task": task,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "config": asdict(config),
        "framework": facts,
        "versions": machine.versions(),
        **machine.hardware(),
        "thread_pools": [{k: p.get(k) for k in ("internal_api", "version", "num_threads")} for p in threadpool_info()],
        "environment": variables.deciding(),
        "ignored": variables.ignored(),
        "container": machine.container(),
        "source": machine.source(),
        "sha256": {
            "data": dataset.sha256,
            "batch_order": _order(config.params.seed, epochs, len(dataset.train_labels)),
            "initial_weights": initial,
            "final_weights": None,
        },
    }


def common(record: dict[str, Any]) -> dict[str, object]:
    """Facts that must be the same on all ranks of a run: configuration (paths apart), versions, commit, data."""
    config = record["config"]
    return {
        **{f"params.{key}": value for key, value in config["params"].items()},
        **{f"environment.{key}": value for key, value in config["environment"].items()},
        **{f"the version of {name}": version for name, version in record["versions"].items()},
        **{f"SHA-256 of {name}": digest for name, digest in record["sha256"].items()},
        "the framework": record["framework"]["framework"],
        "commit": record["source"]["commit"],
        "data.dataset": config["data"]["dataset"],
    }


def write(folder: Path, content: dict[str, object]) -> None:
    """Writes DIR/experiment.json, whole or not at all."""
    write_json(folder / "experiment.json", content)


def _order(seed: int, epochs: int, samples: int) -> str:
    """The SHA-256 of the orders of all epochs, one after the other, as little-endian int32."""
    digest = hashlib.sha256()
    for epoch in range(1, epochs + 1):
        digest.update(randomness.order(seed, epoch, samples).astype("<i4").tobytes())
    return f"sha256:{digest.hexdigest()}"
