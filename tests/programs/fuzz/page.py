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
    """The text below the heading: the sums, what is refused, and a table of errors that need a reason."""
    calls, computed, refused = (
        sum(getattr(row, name) for row in rows.values()) for name in ("calls", "compared", "refused")
    )
    never = [name for name, row in rows.items() if row.refused and not row.compared]
    unknown = [name for name, row in rows.items() if row.compared and not limit_of(framework, name).compared]
    lines = [
        f"{len(rows)} operations, {calls:,} calls: {computed:,} computed, {refused:,} refused.",
        f"**Refused:** {_listed(never)}.",
        f"**Bits alone are compared**, as the operations are random or give what is in memory: {_listed(unknown)}.",
        "| operation | calls | computed | refused | units in the last place | of the largest | reason |\n|---|---|---|---|---|---|---|",
    ]
    table = [
        f"| `{name}` | {row.calls} | {row.compared} | {row.refused} | {_number(row.ulps)} | {_number(row.share)} | {_reasons(row)} |"
        for name, row in rows.items()
        if row.reasons
    ]
    return "\n\n".join(lines) + "\n" + "\n".join(table) + "\n"


def _reasons(row: compare.Row) -> str:
    return "; ".join(sorted(row.reasons))


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _number(x: float) -> str:
    return f"{x:.2g}" if x else ""


def write(framework: str, rows: dict[str, compare.Row]) -> None:
    """Puts a framework's section into the page."""
    heading = f"## {FRAMEWORKS[framework].title}\n"
    before, _, after = PAGE.read_text().partition(heading)
    rest = re.search(r"^## .*", after, re.DOTALL | re.MULTILINE)
    PAGE.write_text(f"{before.rstrip()}\n\n{heading}\n{section(framework, rows)}" + (f"\n{rest[0]}" if rest else ""))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    write(
        given.framework,
        compare.table(given.framework, compare.outcomes(given.framework, given.folder, ["--all"], 1)),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
