"""The report as one HTML page.

It loads nothing: no network, no script, pictures drawn in place.
"""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from repro import __version__
from repro.report import charts, speed_page
from repro.report.charts import Chart, Line
from repro.report.contents import Block, Curves, Report, TableCell
from repro.report.findings import FRAMEWORK_TITLES, TOGETHER, framework_name, promised, training_name, verdict
from repro.report.timeline import timeline
from repro.structs import LARGEST
from repro.text import ranks, short
from repro.verify.questions import UNANSWERED, shown

PROMISES = {
    "deterministic": "the same bits again on the same machine, with the same software and number of threads",
    "portable": "the same bits everywhere: on any machine, with any number of threads, in all three frameworks",
    "fast": "nothing",
}


def templates() -> Environment:
    """The templates, which escape all that they are given."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def html(report: Report) -> str:
    """The page. Everything in the report may come from a stranger's file, so the template escapes all of it."""
    environment = templates()
    environment.filters |= {
        "framework": framework_name,
        "short": short,
        "shown": shown,
        "promised": promised,
        "training": training_name,
        "duration": duration,
        "ranks": ranks,
        "curves": _curves,
        "growth": _growth,
        "timeline": timeline,
    }
    return environment.get_template("report.html").render(
        report=report,
        benchmarks=[speed_page.section(content) for content in report.benchmarks],
        verdict=verdict(report),
        title="Will you get it again?" if report.sections or not report.benchmarks else "How fast is training here?",
        promises=PROMISES,
        unanswered=UNANSWERED,
        together=TOGETHER,
        frameworks=FRAMEWORK_TITLES,
        chart=charts,
        version=__version__,
    )


def duration(seconds: float) -> str:
    """Seconds as people say them: 7.3 s, 5 min 12 s."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def _curves(curves: list[Curves]) -> list[Chart]:
    """The charts of training loss and of test accuracy. One point is no curve: then the table of speed has to do."""
    pictures = []
    for curve in curves:
        for title, points, least in (("Training loss", curve.loss, 1), ("Test accuracy", curve.accuracy, 2)):
            lines = [Line(name, list(each)) for name, each in points.items() if len(each) >= least]
            if lines:
                scale = charts.linear(y for line in lines for _, y in line.points)
                pictures.append(charts.chart(f"{title}, {curve.numerics}", lines, scale))
    return pictures


def _growth(blocks: list[Block]) -> list[Chart]:
    """A chart for each question whose runs diverge, all to one scale: how the difference grows."""
    drawn: list[tuple[str, list[Line]]] = []
    for block in blocks:
        for row in block.rows:
            lines = [Line(name, _points(cell)) for name, cell in row.cells.items()]
            lines = [line for line in lines if any(y > 0 for _, y in line.points)]
            if lines:
                drawn.append((f"{row.title}, {block.numerics}", lines))
    scale = charts.logarithmic(y for _, lines in drawn for line in lines for _, y in line.points)
    return [charts.chart(title, lines, scale) for title, lines in drawn]


def _points(cell: TableCell) -> list[tuple[float, float]]:
    growth = cell.difference.growth if cell.difference else []
    return [(row.step, row.relative) for row in growth if row.relative is not None and row.relative < LARGEST]
