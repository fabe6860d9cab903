"""The bits of all that portable numerics define in one framework.

    python golden_operations.py pytorch|tensorflow|jax [--check FILE] [--only NAME] [--missing]

Prints a line for each operation, type, pass (the results, or the gradients) and layout of its arrays. With --check, prints
the lines that differ from those of a file, and fails where there are any. With --missing, prints the definitions that no line
computes and no exception names, and fails where there are any.
"""

import argparse
import importlib
import sys
from pathlib import Path

from programs.golden_cases import table


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=table.FRAMEWORKS)
    parser.add_argument("--check", type=Path, help="a file as golden/operations.txt")
    parser.add_argument("--only", default="", help="a part of the names of operations")
    parser.add_argument("--missing", action="store_true")
    given = parser.parse_args()
    framework = importlib.import_module(f"programs.golden_cases.{given.framework}")
    rows = framework.rows(given.only)
    missing = framework.missing() if given.missing else []
    for name in missing:
        print(f"{name} has no row, and no exception names it")
    if not given.check:
        if not given.missing:
            print("\n".join(" ".join((*row, digest)) for row, digest in rows.items()))
        return bool(missing)
    known = {row: digest for row, digest in table.read(given.check)[given.framework].items() if given.only in row[0]}
    wrong = [row for row in {**known, **rows} if known.get(row) != rows.get(row)]
    for row in wrong:
        print(*row, known.get(row, table.NONE), "->", rows.get(row, table.NONE))
    return bool(wrong or missing)


if __name__ == "__main__":
    sys.exit(main())
