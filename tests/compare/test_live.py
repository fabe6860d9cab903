"""A run that is compared with a record while it goes on: it is stopped at the first difference, and never before."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from repro.compare.live import Live
from repro.record import lines, record
from repro.record.lines import STEPS
from repro.record.record import KEPT
from support.commands import Steps, resumed, sha, straight, write


class Run:
    """Stands in for a process: each time that it is asked whether it has ended, it writes its next line."""

    def __init__(self, folder: Path, *processes: Steps, names: tuple[str, ...] = ("12", "13")) -> None:
        (folder / STEPS).mkdir(parents=True)
        (folder / KEPT).mkdir()
        self.folder = folder
        self.left = [
            (name, step, hashes)
            for name, steps in zip(names, processes, strict=False)
            for step, hashes in steps.items()
        ]
        self.last = ("", -1)

    def poll(self) -> int | None:
        if not self.left:
            return 0
        name, step, hashes = self.left.pop(0)
        for code in {code for names in hashes.values() for code in names.values()}:
            (self.folder / KEPT / code).touch()
        with open(self.folder / STEPS / f"{name}.jsonl", "a") as file:
            file.write(json.dumps({"kind": "step", "step": step, "hashes": hashes}) + "\n")
        self.last = (name, step)
        return None

    def write_all(self) -> None:
        while self.poll() is None:
            pass


def beside(tmp_path: Path, recorded: list[Steps], *processes: Steps, **how: Any) -> tuple[Live, Run, bool]:
    """A run beside a record: what is known of it, the run, and whether it was stopped."""
    names = {"names": how.pop("names")} if "names" in how else {}
    run = Run(tmp_path / "run", *processes, **names)
    live = Live(record.read(write(tmp_path / "a", *recorded)), run.folder, **how)
    return live, run, live.is_over(cast(Any, run))


def test_an_equal_run_goes_on_to_its_end(tmp_path: Path) -> None:
    live, run, over = beside(tmp_path, [straight()], straight())
    assert not over and not run.left and live.first_difference() is None


@pytest.mark.parametrize("channel", ["gradients", "optimizer", "weights", "buffers"])
def test_a_run_is_stopped_at_the_first_difference(channel: str, tmp_path: Path) -> None:
    live, run, over = beside(tmp_path, [straight(9)], straight(9, **{channel: {5: "other", 6: "other"}}))
    difference = live.first_difference()
    assert over and run.last == ("12", 5)
    assert (
        difference
        and difference.pair
        and (difference.step, difference.channel, difference.equal_before) == (5, channel, 4)
    )
    assert not difference.pair.partial


def test_the_cause_of_an_effect_is_the_first_difference(tmp_path: Path) -> None:
    live, run, over = beside(tmp_path, [straight(9)], straight(9, batch={5: "other"}, gradients={5: "other"}))
    difference = live.first_difference()
    assert over and run.last == ("12", 5) and difference and difference.channel == "batch"


def test_what_is_drawn_without_an_effect_stops_nothing(tmp_path: Path) -> None:
    _, run, over = beside(tmp_path, [straight(9)], straight(9, generator={5: "other"}, batch={7: "other"}))
    assert not over and not run.left


def test_a_run_that_takes_more_steps_is_stopped(tmp_path: Path) -> None:
    live, run, over = beside(tmp_path, [straight(4)], straight(9))
    difference = live.first_difference()
    assert over and run.last == ("12", 5)
    assert difference and (difference.step, difference.lengths, difference.equal_before) == (5, (4, 5), 4)


def test_a_name_that_is_not_written_yet_is_no_difference(tmp_path: Path) -> None:
    whole = straight(4)
    whole[2]["weights"]["later"] = sha("later")
    _, _, over = beside(tmp_path, [whole], straight(4))
    assert not over


def test_ranks_are_compared_once_all_of_a_name_are_there(tmp_path: Path) -> None:
    """Rank 1 writes first: it is no rank 0."""
    ranks = [straight(3), straight(3, batch={1: "other"}, gradients={1: "other"})]
    names = ("rank-1.5", "rank-0.6")
    _, run, over = beside(tmp_path, ranks, ranks[1], ranks[0], names=names)
    assert not over and not run.left
    live, _, over = beside(tmp_path / "b", ranks, straight(3, gradients={2: "other"}), ranks[0], names=names)
    difference = live.first_difference()
    assert over and difference and difference.step == 1 and difference.pair and difference.pair.a.rank == 1


def test_processes_without_a_rank_wait_for_one_another(tmp_path: Path) -> None:
    a, b = straight(3), straight(3, weights={1: "other"}, gradients={1: "other"})
    Run(tmp_path / "a", a, b, names=("10", "11")).write_all()
    content = record.read(write(tmp_path / "c", a)).content
    recorded = record.Record(tmp_path / "a", content, lines.processes(tmp_path / "a"))
    run = Run(tmp_path / "run", b, a, names=("13", "12"))
    assert not Live(recorded, run.folder).is_over(cast(Any, run)) and not run.left


def test_a_resumed_run_lies_beside_the_steps_that_it_takes_anew(tmp_path: Path) -> None:
    _, run, over = beside(tmp_path, [straight(8)], resumed(3, 8))
    assert not over and not run.left
    live, run, over = beside(tmp_path / "b", [straight(8)], resumed(3, 8, optimizer={2: "other"}))
    difference = live.first_difference()
    assert over and run.last == ("12", 2) and difference and (difference.step, difference.channel) == (5, "optimizer")


def test_arrays_of_the_last_steps_stay(tmp_path: Path) -> None:
    other = straight(9, gradients={5: "other"})
    _, run, over = beside(tmp_path, [straight(9)], other, keep=True)
    there = {path.name for path in (run.folder / KEPT).iterdir()}
    steps = [{code for names in other[step].values() for code in names.values()} for step in range(10)]
    assert over and steps[5] <= there and steps[4] <= there and not steps[2] & there


def test_a_run_is_stopped_where_nothing_more_is_of_interest(tmp_path: Path) -> None:
    live, run, over = beside(tmp_path, [straight(9)], straight(9), until=4)
    assert over and run.last == ("12", 4) and live.first_difference() is None


def test_what_cannot_be_read_stops_nothing(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", straight(4))
    (run.folder / STEPS / "9.jsonl").write_text("[]\n")
    assert not Live(record.read(write(tmp_path / "a", straight(4))), run.folder).is_over(cast(Any, run))
