"""Record the pairs, compare each, and write a table.

    python -m evidence.ports.run run FOLDER [--environment NAME=PYTHON] [--modules STEPS] [--portable] [CASE ...]
    python -m evidence.ports.run table FOLDER

`run` records both programs of each case, with the fault and without it, asks `repro compare --port` about them, and adds
the answers to FOLDER/results.jsonl. `table` writes a Markdown table of them. A program that was recorded already is not
recorded again.

The interpreters are those of .venv/. --environment names another one, as for the libraries that those environments lack:
`--environment jax=~/jax-with-equinox/bin/python`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from evidence.ports import data
from evidence.ports.cases import ENVIRONMENTS, FAULTS, REPORTED, SOUND, TRAINER, Fault, Pair
from repro.errors import INCONCLUSIVE, NOT_REPRODUCIBLE
from repro.record.arrays import array

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

PAIRS: dict[str, Pair] = {pair.name: pair for pair in (*FAULTS, *REPORTED, *SOUND)}


@dataclass(frozen=True)
class Answer:
    """What was measured of a pair, and what compare said."""

    name: str
    with_fault: bool
    loss: float
    """Relative difference of the two programs' mean losses."""
    weights: float
    """Largest difference of the weights after the last step, each side's numbers sorted, as a share of the largest."""
    buffers: float
    code: int
    text: str


def numbers(record: Path, channel: str) -> dict[int, np.ndarray]:
    """All floats of a channel after each step, sorted: so names, layouts and splits of weights make no difference."""
    (file,) = (record / "steps").glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    before = channel == "buffers" and "jax" in lines[0]["frameworks"]  # these are hashed before the step
    floats = {}
    for line in lines:
        if line["kind"] == "step" and line["hashes"].get(channel):
            arrays = [array(record / "kept", digest) for digest in line["hashes"][channel].values()]
            parts = [each.ravel() for each in arrays if each is not None and each.dtype.kind == "f"]
            floats[line["step"] - before] = np.sort(np.concatenate([np.zeros(0), *parts]))
    return floats


def distance(records: tuple[Path, Path], channel: str) -> float:
    """The largest difference after the last step that both have, as a share of the largest number; 0 if there is none.

    It is infinite if the two do not hold equally many numbers.
    """
    first, second = (numbers(record, channel) for record in records)
    if not (common := first.keys() & second.keys()):
        return 0.0
    one, other = first[max(common)], second[max(common)]
    return float(np.abs(one - other).max() / np.abs(one).max()) if one.shape == other.shape else float("inf")


@dataclass(frozen=True)
class Runner:
    folder: Path
    pythons: dict[str, str]
    modules: str
    portable: bool
    workspace: Path
    """Of the reference trainers."""

    def answer(self, pair: Pair, with_fault: bool) -> Answer:
        """Records both programs and compares them."""
        faulty = pair.faulty if with_fault and isinstance(pair, Fault) else None
        first, second = (
            self.record(pair, side, pair.options.split() + (["--fault", pair.name] if side == faulty else []))
            for side in (0, 1)
        )
        records = first, second
        losses = [float((record / "loss").read_text()) for record in records]
        done = self.repro("compare", *map(str, records), "--port")
        return Answer(
            pair.name,
            with_fault,
            abs(losses[0] - losses[1]) / abs(losses[0]),
            distance(records, "weights"),
            distance(records, "buffers"),
            done.returncode,
            done.stdout,
        )

    def record(self, pair: Pair, side: int, words: list[str]) -> Path:
        """The record of a program, and beside it the loss that it printed."""
        program = pair.programs[side]
        to = self.folder / "records" / "".join([program.replace("/", "-"), *words]).replace("--", "-").replace(" ", "")
        if (to / "loss").exists():
            return to
        framework = program.rpartition("_")[2]
        if program.startswith(TRAINER):
            command = [
                str(ROOT / "run.sh"),
                framework,
                f"--workspace={self.workspace}",
                "params.max_steps=3",
                "params.trace_steps=1",
            ]
        else:
            command = [self.pythons[ENVIRONMENTS[framework]], str(HERE / f"{program}.py")]
            command.append(str(self.folder / f"{pair.data}.npz"))
        looking = ["--modules", self.modules] if self.modules else ["--keep"]
        looking += ["--portable"] if self.portable else []
        done = self.repro("record", *looking, "--to", str(to), "--", *command, *words)
        loss = re.search(r"\bloss (\S+)", done.stdout)
        if done.returncode or not loss:
            sys.exit(f"{program} {' '.join(words)}: exit code {done.returncode}\n{done.stdout}")
        (to / "loss").write_text(loss[1], encoding="utf-8")
        return to

    def repro(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "240", "NO_COLOR": "1"}
        command = [sys.executable, "-m", "repro", *words]
        return subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )


def run(options: argparse.Namespace) -> None:
    data.write(options.folder)
    pythons = {name: str(ROOT / ".venv" / name / "bin/python") for name in set(ENVIRONMENTS.values())}
    pythons |= dict(each.split("=", 1) for each in options.environment)
    runner = Runner(options.folder.resolve(), pythons, options.modules, options.portable, options.workspace)
    with (options.folder / "results.jsonl").open("a", encoding="utf-8") as file:
        for pair in [PAIRS[name] for name in options.cases] or PAIRS.values():
            for with_fault in (True, False) if isinstance(pair, Fault) else (False,):
                answer = runner.answer(pair, with_fault)
                print(json.dumps(asdict(answer)), file=file, flush=True)
                print(
                    f"{pair.name:16} {'fault' if with_fault else 'sound':6} {answer.loss:.1e} {answer.weights:.1e} {answer.buffers:.1e} {answer.code}",
                    flush=True,
                )


HEAD = "| case | programs | apart with the fault | without | the tool: differs | where | why | the sound pair |\n|---|---|---|---|---|---|---|---|\n"


def table(folder: Path) -> str:
    """Markdown: how far the two of each case are apart, and what compare said, held against what is true."""
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    answers = {(each.name, each.with_fault): each for each in (Answer(**json.loads(line)) for line in lines)}
    rows = []
    for name, pair in PAIRS.items():
        sound, faulty = answers.get((name, False)), answers.get((name, True))
        if sound is None:
            continue
        cells = [name, " and ".join(f"`{path.rpartition('/')[2]}`" for path in pair.programs)]
        cells += [_apart(faulty), _apart(sound)]
        cells += _judged(pair, faulty) if isinstance(pair, Fault) and faulty else ["", "", ""]
        # Sides that draw their own weights can only be said to draw them alike.
        cells.append(_mark(sound.code == (INCONCLUSIVE if pair.drawn else 0), _head(sound)))
        rows.append(f"| {' | '.join(cells)} |\n")
    return HEAD + "".join(rows)


def _apart(answer: Answer | None) -> str:
    if answer is None:
        return ""
    buffers = f", buffers {answer.buffers:.0e}" if 0 < answer.buffers < float("inf") else ""
    return f"loss {answer.loss:.0e}, weights {answer.weights:.0e}{buffers}"


def _judged(fault: Fault, answer: Answer) -> list[str]:
    """Whether the tool sees a difference, names where it begins, and says why: a cause that is not the planted one is wrong."""
    head = _head(answer)
    why = re.search(r"^  why +(.*)$", answer.text, re.MULTILINE)
    said = why[1] if why else ""
    cause = "none" if not why or "no rule" in said else _mark(bool(re.search(fault.cause, said, re.IGNORECASE)), said)
    return [_mark(answer.code == NOT_REPRODUCIBLE, head), _mark(bool(re.search(fault.quantity, head)), head), cause]


def _head(answer: Answer) -> str:
    """The line with the verdict."""
    line = re.search(r"^(differs|agrees|inconclusive|repro).*$", answer.text, re.MULTILINE)
    return line[0] if line else answer.text[-200:].replace("\n", " ")


def _mark(right: bool, said: str) -> str:
    return "right" if right else f"**wrong**: {said}".replace("|", "/")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("run", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names from cases.py (default: all)")
    parser.add_argument("--environment", action="append", default=[], metavar="NAME=PYTHON")
    parser.add_argument("--modules", default="1", metavar="STEPS", help="'' to look at no modules (default: 1)")
    parser.add_argument("--workspace", type=Path, default=ROOT / "workspace", help="of the reference trainers")
    parser.add_argument("--portable", action="store_true", help="with portable numerics")
    options = parser.parse_intermixed_args()
    if options.task == "run":
        run(options)
    else:
        print(table(options.folder), end="")


if __name__ == "__main__":
    main()
