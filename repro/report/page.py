"""The report as one HTML page that loads nothing: no network, no script, pictures drawn in place."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from repro import __version__
from repro.report import charts, speed_page
from repro.report.findings import FRAMEWORKS, TOGETHER, Json, promised, verdict
from repro.sealed import LARGEST
from repro.text import ranks, short
from repro.verify.questions import UNANSWERED

PROMISES = {
    "deterministic": "the same bits again on the same machine, with the same software and number of threads",
    "portable": "the same bits everywhere: on any machine, with any number of threads, in all three frameworks",
    "fast": "nothing",
}


def html(report: Json) -> str:
    """The page. Everything in the report may come from a stranger's file, so the template escapes all of it."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "framework": framework, "short": short, "promised": promised, "duration": duration, "ranks": ranks,
    }  # fmt: skip
    sections = [
        section | {"pictures": _curves(section["curves"]), "growth": _growth(section["blocks"])}
        for section in report["sections"]
    ]
    benchmarks = [speed_page.section(content) for content in report.get("benchmarks", [])]
    template = environment.get_template("report.html")
    return template.render(
        report | {"sections": sections, "benchmarks": benchmarks},
        growth_across=_growth(report["across"]), verdict=verdict(report),
        broken=report["verdict"]["broken"],
        title="Will you get it again?" if sections or not benchmarks else "How fast is training here?",
        promises=PROMISES, unanswered=UNANSWERED, together=TOGETHER, frameworks=FRAMEWORKS, chart=charts,
        version=__version__,
    )  # fmt: skip


def framework(name: str) -> str:
    """A framework's own name."""
    return FRAMEWORKS.get(name, "all together" if name == TOGETHER else name)


def duration(seconds: float) -> str:
    """As people say it: 7.3 s, 5 min 12 s."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def _curves(curves: list[Json]) -> list[Json]:
    """The charts of training loss and of test accuracy. One point is no curve: then the table of speed has to do."""
    pictures = []
    for curve in curves:
        for kind, least in (("loss", 1), ("accuracy", 2)):
            lines = [charts.Line(name, points) for name, points in curve[kind].items() if len(points) >= least]
            if lines:
                scale = charts.linear(y for line in lines for _, y in line.points)
                title = f"{'Training loss' if kind == 'loss' else 'Test accuracy'}, {curve['numerics']}"
                pictures.append({"title": title} | charts.chart(lines, scale))
    return pictures


def _growth(blocks: list[Json]) -> list[Json]:
    """A chart for each question whose runs part, all to one scale: how the difference grows."""
    found: list[tuple[str, list[charts.Line]]] = []
    for block in blocks:
        for row in block["rows"]:
            lines = [charts.Line(name, _points(cell)) for name, cell in row["cells"].items()]
            lines = [line for line in lines if any(y > 0 for _, y in line.points)]
            if lines:
                found.append((f"{row['title']}, {block['numerics']}", lines))
    scale = charts.logarithmic(y for _, lines in found for line in lines for _, y in line.points)
    return [{"title": title} | charts.chart(lines, scale) for title, lines in found]


def _points(cell: dict[str, Any]) -> list[tuple[float, float]]:
    rows = cell["difference"]["growth"] if cell["difference"] else []
    return [(row["step"], row["relative"]) for row in rows if row["relative"] is not None and row["relative"] < LARGEST]
