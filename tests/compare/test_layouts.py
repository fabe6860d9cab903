"""Records of one training that is split among ranks in different ways."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from repro.compare import layouts
from repro.compare.comparison import compare
from repro.compare.difference import Difference, first_difference
from repro.errors import UsageError
from repro.record import record
from repro.record.record import Record
from repro.record.typed_lines import Step
from repro.report.comparison import told
from support.commands import Steps, repro, sha, straight, write

Rows = list[list[str]]
"""The samples of each rank, in each step."""


def rank(number: int, **changed: Any) -> Steps:
    """A replica with a batch, a generator and statistics of its own; rank 0 has the generator of a single process."""
    own: dict[str, Any] = {name: dict.fromkeys(range(1, 5), (name, number)) for name in ("batch", "buffers")}
    own["generator"] = dict.fromkeys(range(1, 5), number)
    return straight(**(own if number else {"batch": own["batch"]}) | changed)


def with_samples(made: Record, rows: Rows, shared: str = "") -> Record:
    """A record whose loaders show their samples, the same in each step; `shared`: the ranks that share tensors."""
    for process, of_rank in zip(made.processes, rows, strict=True):
        for step in range(1, process.last + 1):
            described: dict[str, Any] = {"epoch": 1, "data": 0, "sampler": "", "replacement": False, "stream": False}
            described |= {"workers": 0, "size": 9, "indices": None, "rows": of_rank, "drew": []}
            line = {"step": step, "hashes": {}, "samples": {"0": described}, "shared": [shared] if shared else []}
            process.lines[step] = msgspec.convert(line, Step)
    return made


def read(path: Path, *processes: Steps) -> Record:
    return record.read(write(path, *processes))


def first(a: Record, b: Record) -> Difference | None:
    return first_difference(*layouts.side_by_side(a, b))


def test_one_process_and_two_ranks(tmp_path: Path) -> None:
    single, ranks = write(tmp_path / "a", straight()), write(tmp_path / "b", rank(0), rank(1))
    same = compare(single, ranks)
    assert same.found is None
    assert "layouts: A has 1 process; B has 2 ranks. Whole tensors are compared" in told(same)
    assert record.read(single).content.fingerprint == record.read(ranks).content.fingerprint


def test_the_first_tensor_that_differs_is_named(tmp_path: Path) -> None:
    other = rank(0, gradients={3: "x"}), rank(1, gradients={3: "x"})
    found = compare(write(tmp_path / "a", straight()), write(tmp_path / "b", *other)).found
    assert found and (found.step, found.channel, found.names, found.equal_before) == (3, "gradients", ["w"], 2)


def test_a_replica_that_drifts_is_no_single_process(tmp_path: Path) -> None:
    drifting = rank(0), rank(1, weights={4: "x"})
    found = compare(write(tmp_path / "a", straight()), write(tmp_path / "b", *drifting)).found
    assert found and (found.step, found.channel, found.names) == (4, "weights", ["w"])
    prints = [record.read(tmp_path / name).content.fingerprint for name in "ab"]
    assert prints[0] != prints[1]


def test_the_samples_of_all_ranks_are_the_batch(tmp_path: Path) -> None:
    x = {3: "x"}
    single = with_samples(read(tmp_path / "a", straight()), [["p", "q", "r", "s"]])
    shares = read(tmp_path / "b", rank(0, weights=x), rank(1, weights=x))
    found = first(single, with_samples(shares, [["q", "p"], ["s", "r"]]))
    assert found and (found.step, found.channel) == (3, "weights")
    found = first(single, with_samples(shares, [["q", "p"], ["s", "t"]]))
    assert found and (found.step, found.channel) == (2, "batch")  # as a batch matters to its step or the next


def test_ranks_that_compute_with_the_same_samples_count_them_once(tmp_path: Path) -> None:
    x = {3: "x"}
    single = with_samples(read(tmp_path / "a", straight()), [["p", "q"]])
    ranks = read(tmp_path / "b", rank(0, weights=x), rank(1, weights=x))
    found = first(single, with_samples(ranks, [["p", "q"], ["p", "q"]], "0,1"))
    assert found and (found.step, found.channel) == (3, "weights")


def test_as_many_ranks_in_another_layout(tmp_path: Path) -> None:
    """Two ranks with a batch each, two that share a layer and its batch; and the same batches on other ranks."""
    replicas, together = read(tmp_path / "a", rank(0), rank(1)), read(tmp_path / "b", straight(), straight())
    others = (dict.fromkeys(range(1, 5), ("batch", 1 - number)) for number in (0, 1))
    swapped = read(tmp_path / "c", *(rank(number, batch=batch) for number, batch in enumerate(others)))
    assert layouts.differ(replicas, together) and first(replicas, together) is None
    assert layouts.differ(replicas, swapped) and first(replicas, swapped) is None
    assert not layouts.differ(replicas, replicas) and not layouts.differ(together, together)


def test_ranks_that_share_tensors_and_replicas(tmp_path: Path) -> None:
    a, b = (read(tmp_path / name, rank(0), rank(1)) for name in "ab")
    assert not layouts.differ(a, b)
    b.processes[0].lines[1].shared = ["0,1"]
    assert layouts.differ(a, b) and first(a, b) is None
    assert layouts.described(b) == "2 ranks, tensors shared by ranks 0,1"


def test_processes_that_are_no_ranks_are_compared_one_by_one(tmp_path: Path) -> None:
    a, b = read(tmp_path / "a", straight()), read(tmp_path / "b", straight(), straight())
    for number, process in enumerate(b.processes):
        process.name = str(10 + number)
    assert layouts.side_by_side(a, b) == (a, b)
    with pytest.raises(UsageError, match="records with equally many"):
        first_difference(a, b)


def test_no_single_operation_is_looked_for(tmp_path: Path) -> None:
    write(tmp_path / "a", straight())
    write(tmp_path / "b", rank(0, weights={3: "x"}), rank(1, weights={3: "x"}))
    done = repro("compare", "--narrow", "a", "b", cwd=tmp_path)
    assert done.returncode == 2 and "compare runs of as many ranks" in done.stderr
    assert sha("x") not in done.stderr
