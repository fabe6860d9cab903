"""Samples of the batches of PyTorch's loaders, and the warnings that rest on them."""

import itertools

import pytest

from repro.record.lines import Process, processes
from repro.record.typed_lines import Samples
from support.observed import SCRIPTS, ended, interpreter, start
from support.warnings import said

BATCHES = [4, 4, 3, 3, 3, 3, 4, 2, 2, 2, 2]  # of each pass


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Process:
    folder = tmp_path_factory.mktemp("samples")
    ended(start([interpreter("pytorch"), str(SCRIPTS / "pytorch_samples.py")], folder))
    (process,) = [process for process in processes(folder) if process.steps]
    assert not process.unseen
    return process


@pytest.fixture(scope="module")
def epochs(seen: Process) -> dict[int, list[Samples]]:
    """By pass its batches."""
    results: dict[int, list[Samples]] = {}
    for _, line in sorted(seen.lines.items()):
        for samples in line.samples.values():
            results.setdefault(samples.epoch, []).append(samples)
    return results


def contents(of: list[Samples]) -> dict[int, str]:
    pairs = [(one.indices, one.rows) for one in of]
    return dict(itertools.chain.from_iterable(zip(a or [], b or [], strict=True) for a, b in pairs))


def test_each_pass_through_the_data(epochs: dict[int, list[Samples]]) -> None:
    """... but for that of the evaluation, which comes without gradients."""
    assert [len(epochs[number]) for number in range(1, len(epochs) + 1)] == BATCHES


def test_the_indices_of_a_pass(epochs: dict[int, list[Samples]]) -> None:
    for number in range(1, 7):
        indices = [index for one in epochs[number] for index in one.indices or []]
        assert sorted(indices) == [*range(12)] != indices
    assert {(one.sampler, one.size, one.replacement) for one in epochs[5]} == {("RandomSampler", 12, False)}
    assert all(one.indices is None and one.stream and one.size is None for one in epochs[7])


def test_the_hash_of_a_sample(epochs: dict[int, list[Samples]]) -> None:
    """... is the same in each pass, in the loader's process and in a worker, whatever its batch."""
    assert contents(epochs[1]) == contents(epochs[2]) and len({*contents(epochs[1]).values()}) == 12
    assert contents(epochs[5]) == contents(epochs[6]) and len({*contents(epochs[5]).values()}) == 12
    assert not {*contents(epochs[3]).values()} & {*contents(epochs[4]).values()}


def test_the_generators_that_change_while_a_batch_is_fetched(epochs: dict[int, list[Samples]]) -> None:
    drew = {number: {name for one in of for name in one.drew} for number, of in epochs.items()}
    assert [drew[number] for number in sorted(drew)] == [{"numpy"}] * 4 + [set()] * 3 + [{"numpy"}] * 2 + [
        set()
    ] * 2  # of workers, too


def test_zeros_and_nan(seen: Process) -> None:
    marks = [(line.zero, line.nan) for step, line in sorted(seen.lines.items()) if step > 0]
    assert {name.partition(".")[2] for name in marks[0][0]["gradients"]} == {"dead.weight", "dead.bias"}
    assert not any(nan for _, nan in marks[:-3]) and all(
        nan.keys() == {"gradients", "weights"} for _, nan in marks[-3:]
    )


def test_what_is_said_of_them(seen: Process) -> None:
    result = said(seen)
    assert result.keys() == {"augmentation_repeats", "samples_of_each_worker", "zero_gradients", "not_a_number"}
    assert result["samples_of_each_worker"].startswith("in epoch 1 each of 12 samples came 2 times or more")
