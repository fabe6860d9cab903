"""The table golden/operations.txt: a line for each operation, type, pass and layout, a column for each framework."""

from pathlib import Path

FRAMEWORKS = ("pytorch", "tensorflow", "jax")
PATH = Path(__file__).parents[3] / "golden" / "operations.txt"
Row = tuple[str, str, str, str]
"""Operation, type, pass and layout."""
NONE = "-"
HEADER = """\
# The bits of all operations that portable numerics define, by tests/programs/golden_operations.py:
# the operation, the type of its numbers, its results (forward) or gradients, the layouts of its arrays, and of each
# framework the first 16 digits of a SHA-256, "refused" where it is refused, - where it has no such operation.
# Layouts of equal bits share a line. To write it anew: python tests/programs/golden_cases/write.py
"""


def parsed(lines: str) -> dict[Row, str]:
    """Parses what golden_operations.py printed for one framework."""
    results: dict[Row, str] = {}
    for line in lines.splitlines():
        name, dtype, way, layout, digest = line.split()
        results[name, dtype, way, layout] = digest
    return results


def read(path: Path = PATH) -> dict[str, dict[Row, str]]:
    """Digests by framework and row."""
    results: dict[str, dict[Row, str]] = {framework: {} for framework in FRAMEWORKS}
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, dtype, way, layouts, *digests = line.split()
        for framework, digest in zip(FRAMEWORKS, digests, strict=True):
            if digest != NONE:
                results[framework].update({(name, dtype, way, layout): digest for layout in layouts.split(",")})
    return results


def written(digests: dict[str, dict[Row, str]]) -> str:
    """The text of the table."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for name, dtype, way, layout in sorted({row for rows in digests.values() for row in rows}):
        columns = (digests[framework].get((name, dtype, way, layout), NONE) for framework in FRAMEWORKS)
        lines.setdefault((name, dtype, way, *columns), []).append(layout)
    return HEADER + "".join(
        f"{name:<28} {dtype} {way:<8} {','.join(layouts):<18} {' '.join(f'{each:<16}' for each in columns)}".rstrip()
        + "\n"
        for (name, dtype, way, *columns), layouts in lines.items()
    )
