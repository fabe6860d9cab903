"""Warnings from a single record: each is right in one case, and a look-alike does not get it."""

import math
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest

from repro.record.lines import Process
from repro.record.typed_lines import Samples, Step
from repro.record.warnings import RULES, epochs
from support.commands import sha
from support.warnings import said

Epochs = list[list[list[int]]]  # by epoch and batch the indices

ORDER = [[0, 5, 3], [1, 4, 2], [8, 6, 7], [9, 11, 10]]
OTHER = [[3, 1, 9], [11, 0, 7], [5, 2, 4], [8, 10, 6]]


def rows(indices: list[int], epoch: int = 0) -> list[str]:
    return [sha((index, epoch))[:12] for index in indices]


def loaded(passes: Epochs, every_step: int = 1, anew: bool = False, bare: bool = False, **about: Any) -> Process:
    """A process that takes a step for so many batches. `anew`: samples have another content in each epoch; `bare`: no loader."""
    process, batches = Process("10"), []
    for epoch, of_epoch in enumerate(passes, 1):
        for indices in of_epoch:
            codes = rows(indices, epoch * anew)
            described: dict[str, Any] = {
                "epoch": epoch,
                "data": 0,
                "sampler": "RandomSampler",
                "replacement": False,
                "stream": False,
                "workers": 0,
            }
            described |= {"size": 12, "indices": indices, "rows": codes, "drew": []} | about
            batches.append((sha(codes), msgspec.convert(described, Samples)))
    for step, at in enumerate(range(0, len(batches), every_step), 1):
        taken = batches[at : at + every_step]
        hashes = {"batch": {f"{place}.0": code for place, (code, _) in enumerate(taken)}}
        listed: dict[str, Samples] = {} if bare else {str(place): one for place, (_, one) in enumerate(taken)}
        process.steps[step], process.lines[step] = hashes, Step(step=step, hashes={}, samples=listed)
    return process


def test_every_rule_has_a_case_here() -> None:
    names = {rule.__name__ for rule in RULES}
    assert names == {name for name in names if f'"{name}"' in Path(__file__).read_text()}


def joined(first: Process, second: Process) -> Process:
    """One after the other in one process."""
    for step in [*second.steps]:
        first.steps[step + 99], first.lines[step + 99] = second.steps[step], second.lines[step]
        for samples in second.lines[step].samples.values():
            samples.epoch += 99
    return first


# --- order and samples of epochs --------------------------------------------------------------------------------------


def test_epochs_in_one_order() -> None:
    assert said(loaded([ORDER] * 4, sampler="DistributedSampler")) == {
        "epochs_in_one_order": "epochs 1 to 4 had the same batches in the same order (4 batches each; sampler: DistributedSampler)"
    }
    assert "epochs 2 and 3 had" in said(loaded([OTHER, ORDER, ORDER]))["epochs_in_one_order"]
    assert "epochs 1 to 3 had" in said(loaded([ORDER, ORDER, ORDER[:3]]))["epochs_in_one_order"]  # the last is cut off
    assert said(loaded([ORDER] * 2, every_step=2))["epochs_in_one_order"].startswith("epochs 1 and 2")


@pytest.mark.parametrize(
    "process",
    [
        loaded([ORDER, OTHER]),
        loaded([ORDER] * 4, sampler="SequentialSampler"),
        loaded([[[*range(12)]]] * 30),  # a data set no larger than a batch
        loaded([[[0], [1]]] * 3, size=2),  # chance gives two samples the same order every other time
        loaded([ORDER, OTHER[:1], ORDER], every_step=9),  # passes between two steps: evaluation, without no_grad
        loaded([[[number]] for _ in range(4) for number in range(5)], size=1),  # five data sets of a sample each
        joined(loaded([ORDER, OTHER]), loaded([OTHER, ORDER], data=1)),
    ],
)
def test_look_alikes_of_epochs_in_one_order(process: Process) -> None:
    assert said(process) == {}


def test_epochs_of_a_record_of_some_steps_are_not_known() -> None:
    assert said(loaded([ORDER] * 4), every=2) == {}


def test_batches_that_come_again_where_no_loader_is_seen() -> None:
    text = said(loaded([ORDER] * 9, bare=True))["epochs_in_one_order"]
    assert text == "the batches of 4 steps came again in the same order, 9 times in 36 steps"
    assert said(loaded([ORDER, OTHER] * 2, bare=True)) == {}  # 8 batches twice: 15 bits
    assert said(loaded([[[1]]] * 40, bare=True)) == {}  # full-batch training
    assert said(loaded([ORDER, *[OTHER] * 9], bare=True)) == {}


def test_the_period_of_a_sequence() -> None:
    """... as a search over all of them finds it."""
    for length in range(1, 9):
        for seed in range(20):
            draw = random.Random(seed)
            sequence: Any = [draw.choice("ab") for _ in range(length)]
            slow = next(
                p for p in range(1, length + 1) if all(sequence[i] == sequence[i - p] for i in range(p, length))
            )
            assert epochs._period(sequence) == slow


def test_the_bits_of_chance() -> None:
    assert math.isclose(epochs._bits(4), math.log2(24))


def test_augmentation_repeats() -> None:
    text = said(loaded([ORDER, OTHER], drew=["numpy"]))["augmentation_repeats"]
    assert text == (
        "12 samples had the same content in each of epochs 1 and 2, though the state of `numpy` changed while each batch was fetched"
    )


@pytest.mark.parametrize(
    "process",
    [
        loaded([ORDER, OTHER]),  # nothing is drawn, or by the sampler
        loaded([ORDER, OTHER], drew=["numpy"], anew=True),
        loaded([ORDER, OTHER], drew=["numpy"], indices=None),  # batches that are shuffled while they are fetched
        loaded([[[1]]] * 9, drew=["numpy"], size=1),
    ],
)
def test_look_alikes_of_an_augmentation_that_repeats(process: Process) -> None:
    assert "augmentation_repeats" not in said(process)


def test_samples_twice_or_never() -> None:
    twice = [[0, 1, 2], [2, 1, 4]]
    text = said(loaded([ORDER, twice]))["samples_twice_or_never"]
    assert text == "in epoch 2 2 samples came twice or more, such as that of index 1"
    assert said(loaded([twice, twice]))["samples_twice_or_never"].endswith(", and so in 1 of the others")
    never = said(loaded([ORDER[:3], ORDER[2::-1], ORDER[:3]]))["samples_twice_or_never"]
    assert never == "3 samples of 12 came in none of 3 epochs, such as that of index 9"


@pytest.mark.parametrize(
    "process",
    [
        loaded([[[0, 1, 2], [2, 1, 4]]], replacement=True),
        loaded([[*ORDER, *OTHER, *ORDER]], sampler="InfiniteSampler"),
        loaded([[*ORDER[1:], *OTHER]], sampler="list"),  # a resumed run, whose first epoch is what was left of it
        loaded([ORDER[:3], OTHER[:3], ORDER[1:]]),  # a last batch that is dropped, each time another one
        loaded([ORDER[:3], ORDER[2::-1], ORDER[:3]], sampler="SubsetRandomSampler"),
        loaded([ORDER[:3]]),  # cut off
        loaded([ORDER, OTHER], rows=[sha("equal")[:12]] * 3),  # samples that are equal are not one sample
    ],
)
def test_look_alikes_of_samples_that_come_twice(process: Process) -> None:
    assert "samples_twice_or_never" not in said(process)


def test_samples_of_each_worker() -> None:
    stream: dict[str, Any] = {"stream": True, "size": None, "indices": None, "sampler": "_InfiniteConstantSampler"}
    doubled = [[0, 1], [0, 1], [2, 3], [2, 3]]
    text = said(loaded([doubled], workers=2, **stream))["samples_of_each_worker"]
    assert text == "in epoch 1 each of 4 samples came 2 times or more, and the loader has 2 workers"
    for passes, workers in (([doubled], 1), ([ORDER], 2), ([doubled[:3]], 2), ([[[1, 1], [1, 1]]], 2)):
        assert "samples_of_each_worker" not in said(loaded(passes, workers=workers, **stream))
    assert "samples_of_each_worker" not in said(loaded([doubled], workers=2))  # data that hold each sample twice


def with_rows(indices: list[list[int]], contents: list[str], **about: Any) -> Process:
    """One epoch, whose batches have these contents."""
    process = loaded([indices], **about)
    for line, content in zip(process.lines.values(), contents, strict=True):
        line.samples["0"].rows = [sha(content)[:12]]
    return process


def test_workers_with_equal_batches() -> None:
    text = said(with_rows(ORDER, ["a", "a", "b", "b"], workers=2))["workers_with_equal_batches"]
    assert text == "in epoch 1 the 2 workers had equal batches in each of 2 turns, though of different samples"
    twice = [ORDER[0], ORDER[0], ORDER[1], ORDER[1]]
    for indices, contents, workers in (
        (ORDER, "aabb", 0),
        (ORDER, "aabc", 2),
        (ORDER, "aaaa", 2),  # data that are all alike
        (twice, "aabb", 2),
    ):
        assert "workers_with_equal_batches" not in said(with_rows(indices, [*contents], workers=workers))


# --- ranks ------------------------------------------------------------------------------------------------------------


def trained(rank: int, steps: int = 4, **changed: Any) -> Process:
    """A replica: `changed` by channel (`_` for a space) and step. Its batches are its own."""
    process = Process(f"rank-{rank}.1{rank}")
    for step in range(steps + 1):
        channels = ("initial_weights",) if step == 0 else ("batch", "gradients", "weights", "buffers")
        values = {channel: changed.get(channel, {}).get(step, (channel, step)) for channel in channels}
        if step and "batch" not in changed:
            values["batch"] = rank, step
        process.steps[step] = {
            channel.replace("_", " "): {"b": sha(0), "w": sha(value)} for channel, value in values.items()
        }
        process.lines[step] = Step(step=step, hashes={})
    return process


def test_ranks_with_equal_batches() -> None:
    text = said(trained(0, batch={}), trained(1, batch={}))["ranks_with_equal_batches"]
    assert text == "ranks 0 and 1 had equal batches in each of 4 steps, and have equal weights"


def test_look_alikes_of_ranks_with_equal_batches() -> None:
    """Own batches; ranks that share the layers of a model; one batch that is equal, as of a warm-up."""
    assert said(trained(0), trained(1)) == {}
    shards: dict[str, Any] = {"weights": {step: ("shard", step) for step in range(5)}, "initial_weights": {0: "shard"}}
    shards["gradients"] = shards["weights"]
    assert said(trained(0, batch={}), trained(1, batch={}, **shards)) == {}
    assert said(trained(0, batch={}), trained(1, batch={3: "own"})) == {}
    layers = [trained(rank, batch={}) for rank in (0, 1)]
    layers[0].lines[1].shared = ["0,1"]  # whose tensors are gathered
    assert said(*layers) == {}


def test_samples_of_several_ranks() -> None:
    shared: dict[str, Any] = {"sampler": "DistributedSampler"}
    both = [loaded([part], **shared) for part in (ORDER[:2], [[0, 5, 8], [6, 7, 9]])]
    for rank, process in enumerate(both):
        process.name = f"rank-{rank}.1"
    assert said(*both)["samples_of_several_ranks"] == (
        "in epoch 1 2 samples came in several of 2 ranks, such as that of index 0"
    )
    layers = [loaded([ORDER], **shared) for _ in both]
    for rank, process in enumerate(layers):
        process.name = f"rank-{rank}.1"
    assert "samples_of_several_ranks" in said(*layers)
    layers[0].lines[1].shared = ["0,1"]  # they compute with one batch together
    assert "samples_of_several_ranks" not in said(*layers)
    padded = [loaded([part], **shared) for part in (ORDER[:2], [[0, 8, 6], [7, 9, 10]])]
    assert "samples_of_several_ranks" not in said(*padded)


def test_replicas_differ() -> None:
    later = {step: ("apart", step) for step in (3, 4)}
    assert said(trained(0), trained(1, weights=later)) == {
        "replicas_differ": "ranks 0 and 1 start from equal weights, which differ after step 3 and all later ones (`w`)"
    }
    apart: dict[str, Any] = {"initial_weights": {0: "own"}, "weights": {step: ("own", step) for step in range(1, 5)}}
    assert said(trained(0), trained(1, **apart)) == {
        "replicas_differ": "ranks 0 and 1 have equal gradients in each of 4 steps, but start from unequal weights (`w`)"
    }


def test_look_alikes_of_replicas_that_differ() -> None:
    """FSDP's shards; local steps between averages; buffers, which are each rank's own."""
    shards: dict[str, Any] = {
        name: {step: ("shard", step) for step in range(5)} for name in ("initial_weights", "weights", "gradients")
    }
    assert said(trained(0), trained(1, **shards)) == {}
    assert said(trained(0), trained(1, weights={1: "local", 3: "local"})) == {}
    assert said(trained(0), trained(1, buffers=dict.fromkeys(range(1, 5), "own"))) == {}


# --- values -----------------------------------------------------------------------------------------------------------


def marked(steps: int, condition: str, channel: str, names: dict[int, list[str]], **changed: Any) -> Process:
    """A process of whose arrays some are zero, or hold a NaN."""
    process = trained(0, steps, **changed)
    for step, of_step in names.items():
        process.lines[step] = msgspec.convert({"step": step, "hashes": {}, condition: {channel: of_step}}, Step)
    return process


def test_zero_gradients() -> None:
    one = said(marked(4, "zero", "gradients", {step: ["w"] for step in range(1, 5)}))
    assert one == {"zero_gradients": "the gradient of `w` is zero in each step, 4 or more"}
    both = said(marked(4, "zero", "gradients", {step: ["b", "w"] for step in range(1, 5)}))
    assert both == {"zero_gradients": "all gradients are zero in each step, 4 or more"}
    gan = marked(6, "zero", "gradients", {step: ["w"] for step in (1, 3, 5)})
    for step in (2, 4, 6):
        gan.steps[step]["gradients"] = {"v": sha(step)}  # of another optimizer
    assert said(gan) == {"zero_gradients": "the gradient of `w` is zero in each step, 3 or more"}
    dead = said(marked(6, "zero", "gradients", {step: ["b", "w"] for step in range(4, 7)}))
    assert dead == {"zero_gradients": "all gradients are zero from step 4 on, to step 6"}


@pytest.mark.parametrize(
    "names",
    [
        {2: ["w"]},  # an embedding of whose words none came
        {1: ["w"], 2: ["w"]},  # a layer behind one that begins with zeros
        {2: ["b", "w"]},  # a batch without an error
        {3: ["b", "w"], 4: ["b", "w"]},
    ],
)
def test_look_alikes_of_zero_gradients(names: dict[int, list[str]]) -> None:
    assert said(marked(4, "zero", "gradients", names)) == {}
    assert said(marked(2, "zero", "gradients", {1: ["w"], 2: ["w"]})) == {}


def test_zero_weights() -> None:
    one = said(marked(4, "zero", "weights", {step: ["w"] for step in range(1, 5)}))
    assert one == {"zero_weights": "`w` is zero after each of 4 steps, though its gradient is not"}
    both = said(marked(4, "zero", "weights", {step: ["b", "w"] for step in range(1, 5)}))
    assert both == {"zero_weights": "all weights are zero after each of 4 steps"}


def test_look_alikes_of_zero_weights() -> None:
    """A bias that begins with zeros; one that is frozen, and has no gradient."""
    assert said(marked(4, "zero", "weights", {1: ["w"]})) == {}
    frozen = marked(4, "zero", "weights", {step: ["b"] for step in range(1, 5)})
    for step in range(1, 5):
        del frozen.steps[step]["gradients"]["b"]
    assert said(frozen) == {}


def test_unchanged_weights() -> None:
    still = dict.fromkeys(range(1, 5), ("initial_weights", 0))
    assert said(trained(0, weights=still)) == {"unchanged_weights": "no weight was changed in 4 steps"}
    assert said(trained(0, weights={1: ("initial_weights", 0)})) == {}  # a learning rate that begins with 0


def stuck(rate: str = "0.1", steps: int = 12, condition: str = "zero", names: tuple[str, ...] = ()) -> Process:
    """A process of whose two weights one, `b`, never changes; names of gradients that are zero."""
    process = marked(steps, condition, "gradients", {step: [*names] for step in range(1, steps + 1)})
    for step in range(1, steps + 1):
        process.lines[step].scalars["0.group 0.lr"] = rate
    return process


def test_stuck_weights() -> None:
    assert said(stuck()) == {
        "stuck_weights": "`b` was not changed in 12 steps, though its gradient is not zero: each step may be less than the numbers can hold, as in bfloat16"
    }


def test_look_alikes_of_stuck_weights() -> None:
    """A rate of 0, few steps, no gradient, one change."""
    changed = stuck()
    changed.steps[7]["weights"]["b"] = sha(7)
    for process in (stuck(rate="0.0"), stuck(steps=9), changed):
        assert said(process) == {}
    assert "stuck_weights" not in said(stuck(names=("b",)))


def test_not_a_number() -> None:
    text = said(marked(4, "nan", "gradients", {3: ["w"], 4: ["b", "w"]}))["not_a_number"]
    assert text == "NaN from step 3 on, to the last step, 4: first in the gradients (`w`)"
    assert said(marked(4, "nan", "gradients", {2: ["w"]})) == {}  # one that the program leaves behind
    again = said(marked(4, "nan", "gradients", {1: ["b"], 3: ["w"], 4: ["w"]}))["not_a_number"]
    assert again.startswith("NaN from step 3 on")
    assert said(marked(4, "nan", "weights", {0: ["w"]})) == {}
