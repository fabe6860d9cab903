"""Measure what results under portable numerics depend on, and write the table of docs/reference/specification.md.

python docs/dependence.py           stop where the table is out of date
python docs/dependence.py --write   write it anew

tests/programs/dependence/ has the operations, and how it is found. Each framework is asked in its environment, .venv/FRAMEWORK.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "specification.md"
TABLE = re.compile(r"(<!-- dependence -->\n)(.*?)(<!-- end -->)", re.DOTALL)
FRAMEWORKS = {"pytorch": "PyTorch", "jax": "JAX", "tensorflow": "TensorFlow"}
HEAD = ["| operation | its formula | the result | its gradient | in |", "|---|---|---|---|---|"]
NONE = "-"
Row = tuple[str, str, str, str]
"""An operation, and what its formula, its result and its gradient depend on."""


def measured(framework: str) -> list[Row]:
    """What tests/programs/dependence/ finds in a framework."""
    python = ROOT / ".venv" / framework / "bin" / "python"
    program = ROOT / "tests" / "programs" / "dependence" / f"{framework}.py"
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([python, "-s", "-P", program], env=env, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return rows(json.loads(done.stdout))


def rows(report: dict[str, list[str | None]]) -> list[Row]:
    return [(name, *(each or NONE for each in scopes)) for name, scopes in report.items()]  # type: ignore[misc]


def written(results: dict[str, list[Row]]) -> str:
    """The table, with one row for all frameworks that agree."""
    agree: dict[Row, list[str]] = {}
    for framework, title in FRAMEWORKS.items():
        for row in results[framework]:
            agree.setdefault(row, []).append(title)
    names = list(dict.fromkeys(row[0] for row in agree))
    ordered = sorted(agree.items(), key=lambda item: names.index(item[0][0]))
    return "\n".join([*HEAD, *(f"| {' | '.join(row)} | {', '.join(titles)} |" for row, titles in ordered), ""])


def read(page: str) -> dict[str, list[Row]]:
    """The rows of each framework in the table of a page."""
    match = TABLE.search(page)
    assert match is not None, "docs/reference/specification.md has no table"
    results: dict[str, list[Row]] = {framework: [] for framework in FRAMEWORKS}
    for line in match[2].splitlines()[len(HEAD) :]:
        *row, titles = line.strip("| ").split(" | ")
        for framework, title in FRAMEWORKS.items():
            if title in titles.split(", "):
                results[framework].append(tuple(row))  # type: ignore[arg-type]
    return results


def main(write: bool) -> int:
    """The exit code is 1 where the table is out of date, unless it is written anew."""
    page = PAGE.read_text(encoding="utf-8")
    table = written({framework: measured(framework) for framework in FRAMEWORKS})
    fresh = TABLE.sub(lambda match: match[1] + table + match[3], page)
    if write:
        PAGE.write_text(fresh, encoding="utf-8")
    elif fresh != page:
        print("docs/reference/specification.md: its table is out of date; write it with: docs/dependence.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
