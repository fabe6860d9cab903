"""A command whose first run leaves a cache that all later ones read."""

import json
import sys
from pathlib import Path

import pytest

from repro import __main__
from support.runs import ROOT

SCRIPT = """
import pathlib, sys, repro
cache = pathlib.Path("tuned")
way = float(cache.exists())
for step in range(1, 5):
    repro.watch(step, {"weight": step + way})
open(cache, "w").write("the fastest way")
open(sys.argv[1] + "/model", "w").write(str(way))
"""


def test_a_cache_that_the_first_run_leaves_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "train.py").write_text(SCRIPT)
    command = ["--", sys.executable, "train.py", "{run}"]
    assert __main__.main(["verify", "--ask", "restart", "--json", "cold.json", *command]) == 3
    (restart,) = json.loads((tmp_path / "cold.json").read_text())["answers"]
    assert (
        "only the first run differs, so what it left decides: `tuned`; runs 2, 3 and 4 are the same" in restart["why"]
    )
    assert (tmp_path / "tuned").read_text() == "the fastest way"
    assert __main__.main(["verify", "--ask", "restart,cold", "--json", "warm.json", *command]) == 3
    restart, cold = json.loads((tmp_path / "warm.json").read_text())["answers"]
    assert (restart["answer"], cold["answer"]) == ("same", "differs")
    assert "only caches were emptied, so what is in one decides" in cold["why"] and "tuned" in cold["why"]
    assert (tmp_path / "tuned").read_text() == "the fastest way"


def test_no_more_runs_than_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "train.py").write_text(SCRIPT)
    words = ["--ask", "restart", "--runs", "3", "--to", "runs", "--", sys.executable, "train.py", "{run}"]
    assert __main__.main(["verify", *words]) == 3
    assert len(json.loads((tmp_path / "runs" / "results.json").read_text())["runs"]) == 3
    assert __main__.main(["verify", "--runs", "1", *words[4:]]) == 2
