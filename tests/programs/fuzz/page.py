"""The page docs/reference/fuzzer.md: writes the section of a framework.

    python page.py FRAMEWORK FOLDER

FOLDER has the output of `compare.py FRAMEWORK FOLDER --all`.
"""

import argparse
import re
import sys
from pathlib import Path

from programs.fuzz import compare
from programs.fuzz.limits import limit_of
from repro.frameworks import FRAMEWORKS

PAGE = compare.ROOT / "docs" / "reference" / "fuzzer.md"


def section(framework: str, rows: dict[str, compare.Row]) -> str:
    """The text below the heading: the sums, operations without a number of their own, and a table of the others."""
    calls, computed, refused = (
        sum(getattr(row, name) for row in rows.values()) for name in ("calls", "compared", "refused")
    )
    never = [name for name, row in rows.items() if row.refused and not row.compared]
    exact = [name for name, row in rows.items() if row.compared and not (row.refused or row.ulps or row.share)]
    exact = [name for name in exact if limit_of(framework, name).compared]
    unknown = [name for name, row in rows.items() if row.compared and not limit_of(framework, name).compared]
    others = {name: row for name, row in rows.items() if row.compared and name not in {*exact, *unknown}}
    lines = [
        f"{len(rows)} operations, {calls:,} calls: {computed:,} computed, {refused:,} refused.",
        f"**Refused:** {_listed(never)}.",
        f"**Without an error**, float64 rounded once in each call: {_listed(exact)}.",
        f"**Bits alone are compared**, as the operations are random or give what is in memory: {_listed(unknown)}.",
        "| operation | calls | computed | refused | units in the last place | of the largest |\n|---|---|---|---|---|---|",
    ]
    table = [
        f"| `{name}` | {row.calls} | {row.compared} | {row.refused} | {_number(row.ulps)} | {_number(row.share)} |"
        for name, row in others.items()
    ]
    return "\n\n".join(lines) + "\n" + "\n".join(table) + "\n"


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _number(x: float) -> str:
    return f"{x:.2g}" if x else ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    rows = compare.table(given.framework, compare.outcomes(given.framework, given.folder, ["--all"], 1))
    heading = f"## {FRAMEWORKS[given.framework].title}\n"
    text, page = section(given.framework, rows), PAGE.read_text()
    before, _, after = page.partition(heading)
    rest = re.search(r"^## .*", after, re.DOTALL | re.MULTILINE)
    PAGE.write_text(f"{before.rstrip()}\n\n{heading}\n{text}" + (f"\n{rest[0]}" if rest else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
