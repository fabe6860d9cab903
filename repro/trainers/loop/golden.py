"""Published fingerprints of portable runs, golden/DATASET.txt.

Each is one number for every framework and machine.
"""

from dataclasses import replace

from repro.machine.facts import ROOT
from repro.trainers.loop import config
from repro.trainers.loop.config import Config, Data, Params

FOLDER = ROOT / "golden"
LEARNING_RATES = {"sgd": Params().learning_rate, "adam": 0.001}


def name(checked: Config, step: int, steps_per_epoch: int) -> str | None:
    """The name of a run's state in the lists, such as sgd/step-100 or adam/epoch-4; None for one of its own kind.

    Published is the default configuration in portable numerics; Adam's learning rate is 0.001.
    """
    params = checked.params
    default = Params(numerics="portable", optimizer=params.optimizer)
    default = replace(default, learning_rate=LEARNING_RATES.get(params.optimizer, 0.0))
    standard = replace(checked, params=default, data=Data(checked.data.dataset))
    if config.deciding(checked, None) != config.deciding(standard, None):
        return None
    epoch, rest = divmod(step, steps_per_epoch)
    return f"{params.optimizer}/epoch-{epoch}" if epoch and not rest else f"{params.optimizer}/step-{step}"


def read(dataset: str) -> dict[str, str]:
    """The published fingerprints by name; empty for a data set that has none."""
    path = FOLDER / f"{dataset}.txt"
    if not path.exists():
        return {}
    rows = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return dict(rows)


def verdict(checked: Config, step: int, steps_per_epoch: int, fingerprint: str) -> str | None:
    """A line on the fingerprint of a portable run beside the published one; None where none is published."""
    row = name(checked, step, steps_per_epoch)
    published = read(checked.data.dataset).get(row or "")
    if published is None:
        return None
    where = f"golden/{checked.data.dataset}.txt, {row}"
    if published == fingerprint:
        return f"this is the published fingerprint ({where})"
    return f"this differs from the published one, {published} ({where}): see compare"
