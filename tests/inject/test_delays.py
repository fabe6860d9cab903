"""Delays in threads, workers and ranks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from repro.inject import delays
from repro.record.injection import SITE

BESIDE = """
import concurrent.futures, multiprocessing, os, queue, random, threading
state = random.getstate()
first = queue.Queue(); first.put(1); first.get()
assert "RANK" in os.environ or not [n for n in os.listdir(os.environ["REPRO_OBSERVE"] + "/steps") if "slowed" in n]
found = []
def thread(name):
    hand_over.put(name); found.append(name)
hand_over = queue.Queue()
threads = [threading.Thread(target=thread, args=(name,)) for name in "ab"]
for one in threads: one.start()
for one in threads: one.join()
with concurrent.futures.ThreadPoolExecutor(1) as pool: assert pool.submit(int, "3").result() == 3
def child(given): given.put(threading.current_thread().name)
given = multiprocessing.get_context("fork").Queue()
process = multiprocessing.get_context("fork").Process(target=child, args=(given,)); process.start()
assert given.get() == "MainThread"; process.join()
assert random.getstate() == state
print(*found)
"""


def run(folder: Path, seed: str, **more: str) -> str:
    """What the program prints whose threads are slowed."""
    (folder / "steps").mkdir(parents=True)
    own = {"PYTHONPATH": str(SITE), "REPRO_DELAYS": seed, "REPRO_OBSERVE": str(folder)} | more
    done = subprocess.run(
        [sys.executable, "-c", BESIDE], env=os.environ | own, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_what_runs_beside_waits_and_the_other_way_round_the_first_is_last(tmp_path: Path) -> None:
    orders = [run(tmp_path / f"{n}", seed) for n, seed in enumerate(("2", "-2", "6", "-6"))]
    assert orders[0] != orders[1] and orders[2] != orders[3] and {*orders} == {"a b", "b a"}
    assert {file.name for file in (tmp_path / "0" / "steps").glob("slowed-*")} == {"slowed-threads", "slowed-processes"}


def test_a_rank_is_slowed_and_the_process_before_it_that_has_ended_is_not_beside_one(tmp_path: Path) -> None:
    (tmp_path / "steps").mkdir()
    first = delays.Delays("1", str(tmp_path))
    assert not first.is_beside and delays.Delays("1", str(tmp_path)).is_beside
    (tmp_path / "steps" / "delays-0").write_text("4194305")  # no process has so high a number
    assert not delays.Delays("1", str(tmp_path)).is_beside


def test_ranks_wait_otherwise_than_each_other(tmp_path: Path) -> None:
    assert run(tmp_path / "0", "1", RANK="0") and run(tmp_path / "1", "1", RANK="1")
    for rank in "01":
        names = {file.name for file in (tmp_path / rank / "steps").glob("slowed-*")}
        assert names == {"slowed-threads", "slowed-ranks"}


def test_no_process_waits_for_more_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("repro.inject.delays.time.sleep", slept.append)
    (tmp_path / "steps").mkdir()
    one = delays.Delays("1", str(tmp_path))
    one.is_beside = True
    for _ in range(10_000):
        one.wait()
    assert delays.ALL <= sum(slept) < delays.ALL + delays.MOST and max(slept) <= delays.MOST
