"""Train the programs of docs/reference/coverage.md, and write its table.

    python docs/coverage.py train [--python=PATH] [--results=FILE] [--numerics=portable|own] [PROGRAM ...]
    python docs/coverage.py table [--results=FILE]

`train` trains each program in each variant, with portable numerics and without, and adds the results to FILE; what is
there already is not trained again. PROGRAM is GROUP:NAME, a group, or a framework. `table` writes the tables of
the frameworks in it. The programs are in evidence/coverage/.

It is not run in CI. PATH is the Python of an environment with the framework, its libraries (docs/reference/coverage.md), llvmlite
and the packages of this project. All of it takes some hours on two cores.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from evidence.coverage.registry import GROUPS
from repro.verify.command_questions import AVX2, SSE4, THREADS

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).parent / "reference" / "coverage.md"
TABLE = re.compile(r"(<!-- coverage (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
TITLES = {"pytorch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow"}
WORKER = ROOT / "evidence/coverage/worker.py"
SECONDS = 3600
"""The longest time of one process."""


@dataclass(frozen=True)
class Variant:
    """How a program is trained; its result must not depend on it."""

    name: str
    threads: int
    switches: tuple[tuple[str, str], ...] = ()
    kernels: bool = True
    """Whether kernels are compiled."""

    def environment(self) -> dict[str, str]:
        return os.environ | {name: str(self.threads) for name in THREADS} | dict(self.switches) | PATHS


PATHS = {"PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive", "PYTHONHASHSEED": "0"}
EIGEN = (("TF_ENABLE_ONEDNN_OPTS", "0"),)
"""TensorFlow's kernels of Eigen in the place of oneDNN's."""
VARIANTS = (
    Variant("1 thread", 1),
    Variant("2 threads, AVX2", 2, AVX2, kernels=False),
    Variant("4 threads, SSE4", 4, (*SSE4, *EIGEN), kernels=False),
)

OWN = (VARIANTS[0], VARIANTS[-1])
"""Those without portable numerics: enough to see that they differ."""

Results = dict[tuple[str, str, str, bool], dict[str, Any]]
"""By group, name, variant, and whether numerics are portable."""


def results(path: Path) -> Results:
    """What is in a file of results; a later line replaces an earlier one."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    content = map(json.loads, lines)
    return {(each["group"], each["name"], each["variant"], each["portable"]): each for each in content}


def lines(process: "subprocess.Popen[str]") -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith('{"name"'):
            yield json.loads(line)


def train(python: str, path: Path, group: str, names: list[str], variant: Variant, portable: bool) -> None:
    """Trains programs in one process; a program that ends the process is noted, and the others go on in another."""
    options = [f"--threads={variant.threads}", *["--portable"] * portable, *["--plain"] * (not variant.kernels)]
    while names:
        command = [python, "-s", "-P", str(WORKER), group, *names, *options]
        with subprocess.Popen(command, env=variant.environment(), stdout=subprocess.PIPE, text=True) as process:
            for results in lines(process):
                names = [name for name in names if name != results["name"]]
                note(path, {"group": group, "variant": variant.name, "portable": portable} | results)
        if names and process.returncode:
            results = {"name": names.pop(0), "error": f"the process ended with {process.returncode}"}
            note(path, {"group": group, "variant": variant.name, "portable": portable} | results)


def note(path: Path, line: dict[str, Any]) -> None:
    print(
        line["group"],
        line["name"],
        line["variant"],
        "portable" if line["portable"] else "own",
        outcome(line),
        flush=True,
    )
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def outcome(line: dict[str, Any]) -> str:
    return line.get("refused") or line.get("error") or line["fingerprint"][:15]


def names_of(python: str, group: str) -> list[str]:
    """The programs of a group, as its file has them."""
    command = [python, "-s", "-P", str(WORKER), group, "--list"]
    return subprocess.run(command, env=os.environ | PATHS, check=True, capture_output=True, text=True).stdout.split(
        "\n"
    )[:-1]


# --- table ------------------------------------------------------------------------------------------------------------


def one_fingerprint(results: list[dict[str, Any]]) -> bool:
    return bool(results) and len({each.get("fingerprint") for each in results}) == 1 and "fingerprint" in results[0]


def cell(results: list[dict[str, Any]], number: int) -> str:
    """What came of a program in a number of variants."""
    if not results:
        return "not trained"
    refused = next((each["refused"] for each in results if "refused" in each), None)
    if refused is not None:
        match = re.search(r"portable numerics: (\S+)", refused)
        return f"refused: `{match[1] if match else refused}`"
    if any("error" in each for each in results):
        return "error"
    if one_fingerprint(results):
        return "one" if len(results) == number else f"one, of {len(results)} of {number}"
    return f"{len({each['fingerprint'] for each in results})} differ"


def table(results: Results, framework: str) -> str:
    """A row for each program of a framework: its fingerprints; "" where none was trained."""
    order = list(GROUPS[framework])
    programs = list(dict.fromkeys((group, name) for group, name, *_ in results if group in order))
    if not programs:
        return ""
    rows, sums, trained = [], {True: 0, False: 0}, {True: 0, False: 0}
    for group, name in sorted(programs, key=lambda each: order.index(each[0])):
        cells = []
        for portable in (True, False):
            variants = VARIANTS if portable else OWN
            given = [results[key] for v in variants if (key := (group, name, v.name, portable)) in results]
            trained[portable] += bool(given)
            sums[portable] += len(given) > 1 and one_fingerprint(given)
            cells.append(cell(given, len(variants)))
        shown = next(
            (
                results[key]["fingerprint"][7:19]
                for key in results
                if key[:2] == (group, name) and key[3] and "fingerprint" in results[key]
            ),
            "",
        )
        rows.append(f"| {group} | `{name}` | {cells[0]} | {cells[1]} | `{shown}` |")
    head = [
        f"{sums[True]} of {trained[True]} programs have one fingerprint under portable numerics; "
        f"{sums[False]} of {trained[False]} have one without.",
        "",
        f"| from | program | portable | {TITLES[framework]}'s own | fingerprint |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=("train", "table"))
    parser.add_argument("programs", nargs="*", default=["pytorch"], help="FRAMEWORK, GROUP or GROUP:NAME")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--numerics", choices=("portable", "own"), action="append")
    parser.add_argument("--results", type=Path, default=ROOT / "workspace/coverage.jsonl")
    options = parser.parse_intermixed_args()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    if options.action == "table":
        page = PAGE.read_text(encoding="utf-8")
        result = results(options.results)
        fresh = TABLE.sub(lambda match: match[1] + (table(result, match[2]) or match[3]) + match[4], page)
        PAGE.write_text(fresh, encoding="utf-8")
        return
    for each in [group for given in options.programs for group in GROUPS.get(given, [given])]:
        group, _, name = each.partition(":")
        names = [name] if name else names_of(options.python, group)
        for portable in [each == "portable" for each in options.numerics or ("portable", "own")]:
            for variant in VARIANTS if portable else OWN:
                done = results(options.results)
                left = [name for name in names if (group, name, variant.name, portable) not in done]
                train(options.python, options.results, group, left, variant, portable)


if __name__ == "__main__":
    main()
