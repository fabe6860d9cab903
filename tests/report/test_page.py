"""The page in a real browser.

Its cells say what results.json says, nothing is loaded, and it fits a phone.
"""

import functools
import http.server
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from repro.report import findings, page
from repro.report.contents import Report
from repro.report.findings import framework_name
from repro.structs import converted
from repro.verify.questions import shown as word
from repro.verify.results import Answer, Results
from support.pages import Page
from support.results_files import FRAMEWORKS, Json, plain, sealed
from support.results_files import results as made
from support.runs import HANG

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
VOID = ("meta", "br", "path", "circle", "img", "link", "input")  # never closed, in HTML or as a browser dumps SVG


def report(*contents: Results) -> Report:
    return findings.build([sealed(content) for content in contents])


@pytest.fixture
def browser() -> str:
    result = next(filter(None, map(shutil.which, BROWSERS)), None)
    return result or pytest.skip(f"no browser; on Debian: apt-get install {BROWSERS[0]}")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str, list[str]]]:
    """A folder, the address that it is served under, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_) -> None:
            asked.append(self.path)

    handler = functools.partial(Handler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield tmp_path, f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def dom(browser: str, url: str, profile: Path) -> str:
    """The document that a browser makes of a page."""
    command = [
        browser,
        "--headless",
        "--disable-gpu",
        "--disable-background-networking",
        "--no-first-run",
        f"--user-data-dir={profile}",
        "--virtual-time-budget=2000",
        "--dump-dom",
        url,
    ]
    if os.geteuid() == 0:
        command.insert(1, "--no-sandbox")  # it refuses to run as root with one
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=True)
    return done.stdout


def expected(content: Results, section: int) -> dict[tuple[int, str, str, str], Answer]:
    return {
        (section, answer.numerics, answer.question, framework_name(answer.framework)): answer
        for answer in content.answers
    }


def test_the_cells_in_a_browser(browser: str, served: tuple[Path, str, list[str]]):
    folder, address, asked = served
    contents = [made(), made(model="B", salt="b", broken=("deterministic", "jax", "workers"))]
    (folder / "report.html").write_text(page.html(report(*contents)))
    shown = Page(dom(browser, f"{address}/report.html", folder / "profile"))
    assert asked == ["/report.html"]
    answers = expected(contents[0], 0) | expected(contents[1], 1)
    cells = {place: text for place, text in shown.cells.items() if place[0] >= 0}
    assert cells.keys() == answers.keys()
    for place, answer in answers.items():
        words = cells[place].split()
        assert " ".join(words).startswith(word(answer.answer))
        assert ("✓ as promised" in cells[place]) == (answer.kept is True)
        assert ("✗ promised: same" in cells[place]) == (answer.kept is False)
        runs = contents[place[0]].runs
        for name in answer.runs:
            assert str(runs[name].fingerprint) in cells[place] and runs[name].command in cells[place]
        difference = answer.difference
        if difference:
            assert f"step {difference.step}" in cells[place] and str(difference.tensor) in cells[place]
            assert difference.causes[0].fact in cells[place]
        if answer.answer == "not asked":
            assert str(answer.reason) in " ".join(words)
    across = {place[1:]: text.split()[0] for place, text in shown.cells.items() if place[0] < 0}
    assert across == {
        (numerics, "machine", title): said
        for numerics, said in (("deterministic", "differs"), ("portable", "same"))
        for title in map(framework_name, FRAMEWORKS)
    }


def test_it_fits_a_phone(browser: str, served: tuple[Path, str, list[str]]):
    folder, address, _ = served
    content = made(broken=("deterministic", "jax", "workers"))
    for run in content.runs.values():
        run.command += " " + "x" * 300
    (folder / "report.html").write_text(page.html(report(content)).replace("<details>", "<details open>"))
    (folder / "phone.html").write_text(
        '<iframe id="phone" src="report.html" style="width:360px;height:640px;border:0"></iframe><p id="says"></p>'
        "<script>window.onload = () => { const page = document.getElementById('phone').contentDocument.documentElement;"
        "document.getElementById('says').textContent = page.scrollWidth + ' of ' + page.clientWidth }</script>"
    )
    (said,) = re.findall(r'<p id="says">(\d+) of (\d+)</p>', dom(browser, f"{address}/phone.html", folder / "profile"))
    assert 300 < int(said[0]) == int(said[1])


def test_it_loads_nothing():
    text = page.html(report(made(), made(model="B", salt="b")))
    assert "://" not in text and "url(" not in text and "@import" not in text
    assert "default-src 'none'" in text
    for tag, attributes in Page(text).elements:
        assert tag not in ("script", "link", "img", "iframe", "object", "embed", "base", "use", "image")
        assert not {"src", "href", "srcset", "data", "action"} & attributes.keys()


HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)></style></title>{{ 7 * 7 }}"


def test_what_a_stranger_wrote_is_text():
    def poison(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: poison(inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [poison(inner) for inner in value]
        safe = ("deterministic", "portable", "same", "differs", "not asked", "done", "fingerprint", "as configured")
        keep = not isinstance(value, str) or value in safe or re.match("sha256:|2026-|deterministic/|portable/", value)
        return value if keep else f"{value}{HOSTILE}"

    def poisoned(content: Json) -> Results:
        return converted(poison(content), Results)

    text = page.html(report(poisoned(plain()), poisoned(plain(model="B"))))
    harmless = Page(page.html(report(made(), made(model="B"))))
    shown = Page(text)
    assert {tag for tag, _ in shown.elements} <= {tag for tag, _ in harmless.elements}
    assert {name for _, given in shown.elements for name in given} <= {
        name for _, ours in harmless.elements for name in ours
    }
    assert shown.text.count(HOSTILE) > 100


def test_pictures():
    """Of the loss in each arithmetic, of each question whose runs diverge, and of the accuracy where it is a curve."""
    content = made()
    captions = Page(page.html(report(content))).text
    assert "Training loss, deterministic" in captions and "Training loss, portable" in captions
    assert "Number of threads, deterministic" in captions and "Number of threads, portable" not in captions
    assert "Test accuracy" not in captions
    run = content.runs["portable/jax/as-configured"]
    run.metrics.append(msgspec.structs.replace(run.metrics[0], epoch=2, step=200))
    captions = Page(page.html(report(content))).text
    assert "Test accuracy, portable" in captions and "Test accuracy, deterministic" not in captions


def test_the_same_results_give_the_same_bytes():
    assert page.html(report(made(), made(model="B"))) == page.html(report(made(), made(model="B")))


@pytest.mark.parametrize("extreme", [0.0, -1.0, 5e-324, 1e-300, 9e99])
def test_extreme_numbers(extreme: float):
    content = made()
    for run in content.runs.values():
        run.losses[3], run.seconds, run.steps = extreme, extreme, min(int(extreme), 2**53)
        run.metrics[0].train_seconds = run.metrics[0].test_accuracy = extreme
    for answer in content.answers:
        for row in answer.difference.growth if answer.difference else []:
            row.relative = extreme
    text = page.html(report(content, made(model="B")))
    assert not {"nan", "inf"} & set(re.split("[^a-z]+", text))
