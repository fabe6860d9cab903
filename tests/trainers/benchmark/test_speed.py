"""Conclusions from a benchmark's samples.

Rows, ratios, warnings, verdicts against an older one, text and page.
"""

import io
import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from repro.errors import ReproError, UsageError
from repro.report import against_table, findings, page, report, speed_tables
from repro.structs import checksum
from repro.trainers.benchmark import against, results, roofline, speed
from repro.trainers.benchmark.results import Benchmark, DoneSample, FailedSample, Row, Summary, TimeToTarget
from repro.trainers.loop import times
from repro.verify import results as verify_results
from support.measurements import benchmark
from support.pages import Page
from support.results_files import results as made
from support.results_files import sha256

CELL = "jax/deterministic/cpu/32/2/60000"


def row(content: Benchmark, cell: str = CELL) -> Row:
    (result,) = [row for row in content.rows if row.cell == cell]
    return result


def summary(row: Row) -> Summary:
    assert row.seconds_per_epoch is not None
    return row.seconds_per_epoch


def printed(content: Benchmark) -> str:
    console = Console(file=io.StringIO(), width=150)
    speed_tables.show(content, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


# --- what the figures rest on ---------------------------------------------------------------------------------------


def test_flops_by_hand():
    """Multiply-adds forward: 24 x 24 x 25 x 10, 8 x 8 x 250 x 20, 320 x 50, 50 x 10; backward twice, less one."""
    forward = 144_000 + 320_000 + 16_000 + 500
    assert roofline.flops_per_image("lenet") == 2 * (3 * forward - 144_000) == 2_595_000
    forward = 26 * 26 * 9 * 32 + 24 * 24 * 9 * 32 * 64 + 9216 * 128 + 128 * 10
    assert roofline.flops_per_image("convnet") == 2 * (3 * forward - 26 * 26 * 9 * 32)


def test_the_steady_state_is_what_came_before():
    calls = [{"steps": steps, "images": images} for steps, images in ((8, 80), (8, 80), (3, 25), (8, 80), (3, 25))]
    assert times.steady(calls) == [calls[1], calls[3], calls[4]]
    assert times.steady([{"steps": 8, "images": 80}, {"steps": 8, "images": 75}]) == []


# --- rows -----------------------------------------------------------------------------------------------------------


def test_a_row_by_hand():
    """Samples of 1.8 s and 1, 2, 3, 4 % more; a float32 rate of 200 GFLOP/s; a bare import of 1.1 s."""
    result = row(benchmark())
    assert result.seconds_per_epoch == Summary(
        n=5, median=1.8 * 1.02, quartiles=(1.8 * 1.01, 1.8 * 1.03), interval=(1.8, 1.8 * 1.04)
    )
    assert result.images_per_second == 60_000 / (1.8 * 1.02)
    assert result.roofline == pytest.approx(155.7 / 200)
    assert result.cold_start == pytest.approx(3.0 / (1.1 + 1.0))
    assert result.first_epoch == 1.8 * 1.02 + 1.0
    assert (result.agree, result.fingerprints) == (True, [sha256("deterministic 32jax")])


def test_portable_rows_rest_on_float64():
    assert row(benchmark(), "jax/portable/cpu/32/2/60000").roofline == pytest.approx(155.7 / 100)


def test_the_way_to_the_target():
    """98 % is reached in epoch 3, after 11.5 s; other arithmetic takes 3 epochs and evaluations of its own."""
    content = benchmark(noise=0.0)
    assert row(content).to_target == TimeToTarget(11.5, measured=True)
    portable = row(content, "jax/portable/cpu/32/2/60000").to_target
    assert portable == TimeToTarget(3.0 + 3 * (4.5 + 0.25), measured=False)
    assert row(content, "jax/tutorial/cpu/32/2/60000").to_target is None
    content.settings.target = 0.999
    assert row(speed.concluded(content)).to_target == TimeToTarget(None, measured=True)


def test_prices_are_of_the_same_rounds():
    ratios = {(one.kind, one.framework): one for one in benchmark(noise=0.5).ratios}
    assert len(ratios) == 9
    assert ratios["determinism", "jax"].median == pytest.approx(1.25)
    assert ratios["portability", "jax"].interval == pytest.approx((2.5, 2.5))
    assert ratios["tutorial", "jax"].median == pytest.approx(5.0)


def test_other_bits_are_reported_loudly():
    content = benchmark(fingerprints={(CELL, 3): sha256("other")})
    assert content.disagreements == [f"{CELL}: 2 fingerprints, where deterministic promises one"]
    assert row(content).agree is False
    text, markdown = printed(content), speed_tables.markdown(content)
    assert f"NOT REPRODUCIBLE: {CELL}: 2 fingerprints" in text and "NOT REPRODUCIBLE" in markdown
    cell = "jax/portable/cpu/32/2/60000"
    apart = benchmark(fingerprints={(cell, number): sha256("other") for number in range(5)})
    assert row(apart, cell).agree is True
    (said,) = apart.disagreements
    assert said.startswith("portable promises one fingerprint to all of pytorch/portable/cpu/32/2/60000, ")


def test_fast_may_have_other_bits():
    content = benchmark(fingerprints={("jax/fast/cpu/32/2/60000", 3): sha256("other")})
    assert content.disagreements == []


def test_noise_is_reported():
    """Rounds 20 % apart: the interval of five is 80 % of the median of 1.4 wide."""
    (said,) = benchmark(noise=0.2).warnings
    assert "noisy: in 12 of 12 rows no difference below 5%" in said and "40.4% in" in said
    assert benchmark(noise=0.001).warnings == []
    assert "one sample of each" in benchmark(rounds=1).warnings[0]
    busy = speed.concluded(replace(benchmark(noise=0.001), others_busy=1.5))
    assert "busy: other processes took 1.5 of 2 cores" in busy.warnings[0]


def test_a_failed_cell_has_no_figures():
    content = benchmark(rounds=1)
    content.samples = [sample for sample in content.samples if sample.cell != CELL]
    content.samples.append(FailedSample(cell=CELL, seconds=1.0, error="out of memory", round=0))
    content = speed.concluded(content)
    assert row(content).seconds_per_epoch is None
    assert f"{CELL}: out of memory" in content.warnings
    assert f"warning: {CELL}: out of memory" in printed(content)


# --- the file -------------------------------------------------------------------------------------------------------


GOLDEN = Path(__file__).parent / "data" / "benchmark.json"


def test_a_file_of_the_first_version_is_read_and_written_as_it_was(tmp_path: Path):
    """The file was written before its content was typed; the checksum is of all keys and values."""
    content = results.read(GOLDEN)
    results.write(tmp_path / "benchmark.json", speed.concluded(content))
    written, golden = (json.loads(path.read_text()) for path in (tmp_path / "benchmark.json", GOLDEN))
    assert written == golden
    assert list(written) == list(golden) and list(written["rows"][0]) == list(golden["rows"][0])
    assert list(written["ratios"][0]) == list(golden["ratios"][0])


def test_what_is_written_is_read(tmp_path: Path):
    content = benchmark()
    results.write(tmp_path / "benchmark.json", content)
    assert replace(results.read(tmp_path / "benchmark.json"), seal="") == content


def test_a_median_of_other_samples_is_refused(tmp_path: Path):
    content = benchmark()
    summary(row(content)).median /= 2
    with pytest.raises(ReproError, match="the row of jax/deterministic/cpu/32/2/60000 does not follow"):
        results.write(tmp_path / "benchmark.json", content)
    with pytest.raises(UsageError, match=r"does not exist; name a benchmark.json that `./run.sh benchmark` wrote"):
        results.read(tmp_path / "benchmark.json")


def test_other_files_are_refused(tmp_path: Path):
    (tmp_path / "x.json").write_text('{"schema": 1, "answers": []}')
    with pytest.raises(ReproError, match=r"holds no results of `benchmark`; name a benchmark.json"):
        results.read(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("rows", 1, "agree"), 2, "Expected `bool | null`, got `int` - at `$.rows[1].agree`"),
        (("samples", 0, "status"), "lost", "Invalid value 'lost' - at `$.samples[0].status`"),
        (("samples", 0, "seconds_per_epoch"), -1.0, "Expected `float` > 0.0 - at `$.samples[0].seconds_per_epoch`"),
        (("samples", 0, "round"), 0.5, "Expected `int`, got `float` - at `$.samples[0].round`"),
        (("floor", 0, "rates"), [], "Expected `array` of length >= 1 - at `$.floor[0].rates`"),
        (("created",), "today", "- at `$.created`"),
        (("rows", 0, "cell"), "jax", "jax is no cell"),
        (("rows",), [], "the samples of jax/deterministic/cpu/32/2/60000 have no row"),
        (("rows", 0, "seconds_per_epoch"), None, "the row of jax/deterministic/cpu/32/2/60000 does not follow"),
    ],
)
def test_a_flaw_is_named_with_its_place(place: tuple[str | int, ...], value: object, said: str, tmp_path: Path):
    content = json.loads(GOLDEN.read_text())
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    (tmp_path / "benchmark.json").write_text(json.dumps(content | {"seal": checksum(content)}))
    with pytest.raises(ReproError, match=re.escape(said)):
        results.read(tmp_path / "benchmark.json")


# --- against an older one -------------------------------------------------------------------------------------------


def verdicts(old: Benchmark, new: Benchmark) -> dict[str, against.SpeedVerdict]:
    return {one.cell: one for one in against.compare(old, new)}


def test_slower_faster_and_within_the_noise():
    fast, portable = "jax/fast/cpu/32/2/60000", "jax/portable/cpu/32/2/60000"
    result = verdicts(benchmark(), benchmark(slower={CELL: 1.2, fast: 0.8, portable: 1.01}, commit="def"))
    assert (result[CELL].verdict, result[fast].verdict) == (against.SLOWER, against.FASTER)
    assert (result[portable].verdict, result["pytorch/fast/cpu/32/2/60000"].verdict) == (against.EQUAL, against.EQUAL)
    ratio = result[CELL].ratio
    assert ratio is not None and ratio.median == pytest.approx(1.2)
    assert ratio.interval is not None and ratio.interval[0] > 1
    assert result[CELL].why == "the same bits"


def test_of_the_same_code_the_machine_is_slower():
    result = verdicts(benchmark(), benchmark(slower={CELL: 1.2}))
    assert result[CELL].verdict == against.SLOWER
    assert result[CELL].why == "the same bits, the same commit: the machine or its settings changed"
    assert result["jax/portable/cpu/32/2/60000"].why == "the same bits"


def test_other_bits_are_said_beside_a_better_time():
    other = {(CELL, number): sha256("other") for number in range(5)}
    assert verdicts(benchmark(), benchmark(fingerprints=other))[CELL].why == "OTHER BITS than before"


def test_what_cannot_be_compared():
    old = benchmark()
    result = verdicts(old, benchmark(model="Imaginary 9001"))
    assert {one.verdict for one in result.values()} == {against.INCOMPARABLE}
    assert result[CELL].why == "another machine: cpu Imaginary 9000 and Imaginary 9001"
    newer = benchmark()
    for sample in newer.samples:
        assert isinstance(sample, DoneSample)
        sample.version = "1.3.0"
    assert verdicts(old, speed.concluded(newer))[CELL].why == "another version of the framework: 1.2.3 and 1.3.0"
    assert "3 samples are too few" in verdicts(old, benchmark(rounds=3))[CELL].why
    assert verdicts(old, benchmark(batch_sizes=(32, 64)))["jax/fast/cpu/64/2/60000"].why == "only in the new benchmark"
    assert verdicts(old, benchmark(numerics=("fast",)))[CELL].why == "only in the old benchmark"


def test_the_verdicts_in_the_terminal():
    console = Console(file=io.StringIO(), width=150)
    against_table.show(against.compare(benchmark(), benchmark(slower={CELL: 1.2}, commit="def")), console)
    assert isinstance(console.file, io.StringIO)
    *_, slowest, _, counts, advice = console.file.getvalue().splitlines()
    assert CELL in slowest and "1.20 [" in slowest and "slower" in slowest
    assert counts == "1 slower, 0 faster, 11 no difference beyond the noise, 0 incomparable"
    assert advice == against_table.DRIFT
    console = Console(file=io.StringIO(), width=150)
    against_table.show(against.compare(benchmark(), benchmark()), console)
    assert isinstance(console.file, io.StringIO) and against_table.DRIFT not in console.file.getvalue()


# --- the page -------------------------------------------------------------------------------------------------------


class Rows(Page):
    """The rows of the speed tables: of each its texts, the head of a column before the text."""

    def __init__(self, text: str) -> None:
        self.rows: list[list[str]] = []
        self.column: str | None = None
        super().__init__(text)

    def handle_starttag(self, tag: str, attributes) -> None:
        super().handle_starttag(tag, attributes)
        given = dict(attributes)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.column = given.get("data-framework", "")
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag(tag)
        if tag in ("td", "th"):
            self.column = None

    def handle_data(self, data: str) -> None:
        super().handle_data(data)
        if self.column is not None:
            self.rows[-1][-1] += data


def left(folder: Path, content: Benchmark) -> Path:
    folder.mkdir(parents=True)
    results.write(folder / "benchmark.json", content)
    return folder / "benchmark.json"


def test_the_cells_of_the_page_say_what_the_file_says(tmp_path: Path):
    content = benchmark(batch_sizes=(32, 128), noise=0.03)
    left(tmp_path / "benchmark" / "1", content)
    report.write(tmp_path, [])
    shown = Rows((tmp_path / "report" / "report.html").read_text())
    expected = [row for table in speed_tables.tables(content) for row in table.rows]
    assert [row for row in shown.rows if row in expected] == expected
    first = summary(content.rows[0])
    assert first.interval is not None
    text = f"{first.median:.2f} [{first.interval[0]:.2f}, {first.interval[1]:.2f}]"
    assert ["PyTorch", "deterministic", "32", text] == expected[0][:4]
    assert "Images a second, portable" in shown.text and "Seconds per epoch, tutorial, batch size 128" in shown.text
    assert "Will you get it again?" not in shown.text
    markdown = (tmp_path / "report" / "report.md").read_text()
    assert all(row.fingerprints[0][7:15] in markdown for row in content.rows)


def test_both_kinds_on_one_page(tmp_path: Path):
    path = left(tmp_path / "elsewhere", benchmark())
    content = made()
    verified = findings.build([content])
    (tmp_path / "verify" / "1").mkdir(parents=True)
    verify_results.write(tmp_path / "verify" / "1" / "results.json", content)
    both = report.write(tmp_path, [str(path), str(tmp_path / "verify" / "1" / "results.json")])
    assert len(both.benchmarks) == 1 and both.verdict == verified.verdict
    shown = Page((tmp_path / "report" / "report.html").read_text())
    assert "Will you get it again?" in shown.text and "Speed on Imaginary 9000, 2 cores" in shown.text


def test_what_a_stranger_wrote_is_text(tmp_path: Path):
    hostile = "<script>alert(1)</script>"
    content = replace(benchmark(model=hostile), warnings=[hostile], disagreements=[hostile], skipped=[hostile])
    shown = findings.build([])
    shown.benchmarks = [replace(content, seal="sha256:" + "0" * 64)]
    text = page.html(shown)
    assert "<script" not in text and text.count("&lt;script&gt;") >= 4
    assert "://" not in text and "url(" not in text
