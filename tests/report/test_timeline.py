"""Runs as a timeline on the page, and warnings."""

import json

from msgspec import UNSET

from repro.record.warnings import RecordWarning
from repro.report import findings, page, tables
from repro.report.contents import Lane
from repro.report.timeline import timeline
from repro.structs import checksum, converted
from repro.verify.results import Results
from repro.verify.timeline import Files, TimelinePart
from support.pages import Page
from support.runs import ROOT

WHOLE = TimelinePart(after=0, last=40, epochs=[1, 21], files=[Files(step=40, names=["model.pt"])])
STOPPED = [
    TimelinePart(after=0, last=27, epochs=[1, 21], files=[]),
    TimelinePart(after=20, last=40, epochs=[21], files=[]),
]
HOSTILE = "<script>alert(1)</script>\"'><img src=x>"


def results() -> Results:
    """Those of a command whose run `killed-resumed` differs."""
    content = json.loads((ROOT / "tests" / "verify" / "data" / "command.json").read_text())
    content["seal"] = checksum(content)
    result = converted(content, Results)
    result.runs["command/as-it-stands"].parts = [WHOLE]
    result.runs["command/again"].parts = [WHOLE]
    result.runs["command/killed-resumed"].parts = STOPPED
    (killed,) = [answer for answer in result.answers if answer.question == "kill"]
    assert killed.difference
    killed.difference.run, killed.difference.step, killed.difference.channel = "command/killed-resumed", 25, "batch"
    result.warnings = [RecordWarning(rule="not_a_number", text="NaN from step 3 on")]
    return result


def test_the_lanes_of_a_command() -> None:
    """The baseline, and what differs; not the repeat."""
    (section,) = findings.build([results()]).sections
    assert section.lanes == [
        Lane(label="as it stands", parts=[WHOLE]),
        Lane(label="killed, resumed", parts=STOPPED, step=25, channel="batch"),
    ]


def test_a_resumed_run_that_is_the_same_is_shown() -> None:
    same = results()
    for answer in same.answers:
        answer.difference = None
    (section,) = findings.build([same]).sections
    assert [(lane.label, lane.step) for lane in section.lanes] == [("as it stands", None), ("killed, resumed", None)]


def test_where_marks_lie() -> None:
    drawn = timeline([Lane(label="a", parts=[WHOLE]), Lane(label="b", parts=STOPPED, step=25, channel="batch")])
    assert drawn
    whole, stopped = drawn.lanes
    assert drawn.ticks == [(1.0, "0"), (25.5, "10"), (50.0, "20"), (74.5, "30"), (99.0, "40")]
    (bar,) = whole.bars
    assert (bar.start, bar.width, bar.stopped, bar.went_on, whole.difference) == (1.0, 98.0, None, None, None)
    assert [mark.at for mark in bar.epochs] == [1.0, 50.0]  # after steps 0 and 20
    assert [(mark.at, mark.text) for mark in bar.files] == [(99.0, "last written after step 40: `model.pt`")]
    first, second = stopped.bars
    assert first.stopped and (first.stopped.at, first.stopped.text) == (67.15, "stopped after step 27")
    assert [(mark.at, mark.text) for mark in first.files] == [
        (50.0, "the next process went on from the weights after step 20")
    ]
    assert second.went_on and (second.went_on.at, second.went_on.text) == (50.0, "went on after step 20")
    assert (second.start, second.width, second.stopped, first.went_on) == (50.0, 49.0, None, None)
    assert first.y < second.y < stopped.height
    assert stopped.difference and (stopped.difference.at, stopped.anchor) == (62.25, "end")
    assert stopped.difference.text == "first difference: step 25, batch"


def test_nothing_to_draw() -> None:
    assert timeline([]) is None
    assert timeline([Lane(label="a", parts=[TimelinePart(after=0, last=0, epochs=[], files=[])])]) is None


def test_what_the_page_says() -> None:
    text = Page(page.html(findings.build([results()]))).text
    for said in (
        "The runs",
        "first difference: step 25, batch",
        "stopped after step 27",
        "Warning: NaN from step 3 on.",
    ):
        assert said in text
    assert "Warning: NaN from step 3 on." in tables.markdown(findings.build([results()]))


def test_no_picture_without_parts() -> None:
    old = results()
    for run in old.runs.values():
        run.parts = UNSET
    assert "The runs" not in Page(page.html(findings.build([old]))).text


def test_what_a_stranger_wrote() -> None:
    """... is text, and no number is too large to be drawn."""
    harmless, result = results(), results()
    result.warnings = [RecordWarning(rule=HOSTILE, text=HOSTILE)]
    for run in result.runs.values():
        run.label += HOSTILE
        run.parts = [
            TimelinePart(after=-(2**53), last=2**53, epochs=[-5, 2**53], files=[Files(step=2**53, names=[HOSTILE])])
        ] * 99
    pages = [Page(page.html(findings.build([content]))) for content in (harmless, result)]
    assert {tag for tag, _ in pages[1].elements} <= {tag for tag, _ in pages[0].elements}
    assert pages[1].text.count(HOSTILE) > 3 and len(pages[1].text) < 100_000
