"""Each cause: a difference that has it, and one that only looks like it and must not get it."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from repro.compare import reasons
from repro.compare.difference import Difference, first_difference
from repro.compare.reasons.case import GUESS
from repro.record import record
from support.commands import Steps, resumed, sha, straight, write


@dataclass
class Two:
    """Two records, by the processes of each, and whether the second one was resumed."""

    a: list[Steps]
    b: list[Steps]
    resumed: bool | None = None
    framework: str = "torch"
    ranks: bool = True
    """True if several processes are ranks."""
    sampled: bool = False
    """True for runs of a reference trainer."""
    shapes: dict[tuple[int, int], str] = field(default_factory=dict)
    """The shape of the batch, by record and step."""
    bfloat16: dict[tuple[int, int, str], list[str]] = field(default_factory=dict)
    """Names of arrays of such numbers, by record, step and channel."""

    def difference(self, folder: Path) -> Difference:
        ours, theirs = (record.read(write(folder / name, *of)) for name, of in (("a", self.a), ("b", self.b)))
        for process in [*ours.processes, *theirs.processes]:
            process.about.frameworks, process.sampled = {self.framework: "2"}, self.sampled
            process.name = process.name if self.ranks else process.name.rpartition(".")[2]
        for (number, step), shape in self.shapes.items():
            (ours, theirs)[number].processes[0].lines[step].shapes["0"] = shape
        for (number, step, channel), names in self.bfloat16.items():
            (ours, theirs)[number].processes[0].lines[step].bfloat16[channel] = names
        difference = first_difference(ours, theirs, self.resumed)
        assert difference
        return difference


def plain(framework: str = "torch", without: tuple[str, ...] = (), **changed: Any) -> Two:
    return Two([less(straight(), without)], [less(straight(**changed), without)], False, framework)


def goes_on(without: tuple[str, ...] = (), **changed: Any) -> Two:
    return Two([less(straight(8), without)], [less(resumed(4, 8, **changed), without)], True)


def less(steps: Steps, channels: tuple[str, ...]) -> Steps:
    """Without channels that could not be seen."""
    return {step: {name: of for name, of in hashes.items() if name not in channels} for step, hashes in steps.items()}


def old(channel: str, *steps: int) -> dict[int, str]:
    """The first steps of a resumed run with what a channel had at these of the whole one."""
    return {index: sha((channel, step)) for index, step in enumerate(steps, 1)}


def counting(after: int) -> list[Steps]:
    """A process whose steps its script counts: it goes on after one."""
    return [{step: {"weights": {"w": sha(("weights", step))}} for step in range(after + 1, 9)}]


def shared(after: int) -> Steps:
    """A process that trains the weights that another one has trained so far."""
    return straight(initial_weights={0: sha(("weights", after))}, gradients={1: after}, weights={1: (after, 1)})


def accumulating(without: tuple[str, ...] = ("gradients",), **after_resuming: object) -> Two:
    """A run that was resumed after step 5, with MultiSteps of 4; its optimizer's state after its first step."""
    two = Two([less(straight(12), without)], [less(resumed(5, 12, weights={3: 7}), without)], True)
    for offset, steps in ((0, two.a[0]), (5, two.b[0])):
        for step in [step for step in steps if step]:
            n = step + offset
            held = {"mini_step": n % 4, "gradient_step": n // 4, "acc_grads.w": ("sum", n), "inner.mu": n // 4}
            steps[step]["optimizer"] = {f"0.state.{name}": sha((name, value)) for name, value in held.items()}
    for name, value in after_resuming.items():
        name = name.replace("acc_grads", "acc_grads.w").replace("inner", "inner.mu")
        two.b[0][1]["optimizer"][f"0.state.{name}"] = sha((name, value))
    return two


def calling_back(last: int, name: str = "EarlyStopping.wait", value: str = "1", **changed: Any) -> Two:
    """A run that was resumed after step 4 and ends after another one; what a counter is in its first step."""
    two = Two([straight(8)], [resumed(4, last, **changed)], True)
    for offset, steps in ((0, two.a[0]), (4, two.b[0])):
        for step in [step for step in steps if step]:
            steps[step]["scalars"] = {name: str(step + offset)}
            steps[step]["optimizer"] = {"0.sgd/learning_rate": steps[step]["optimizer"].pop("w.momentum")}
    two.b[0][1]["scalars"][name] = value
    return two


def watched(*names: str) -> Two:
    """A resumed run whose weights repro.watch was given; those of some names differ."""
    two = goes_on(without=("gradients", "optimizer"))
    for steps in (*two.a, *two.b):
        for step, hashes in steps.items():
            hashes["weights"] = {f"watch.{name}": sha((name, step + (4 if steps is two.b[0] else 0))) for name in "ab"}
            hashes.pop("initial weights", None)
    del two.b[0][0]
    two.b[0] = {step + 4: hashes for step, hashes in two.b[0].items()}
    two.b[0][5]["weights"] |= {name: sha(7) for name in names}
    return two


def masked(constant: bool) -> Two:
    """A resumed run with the right tokens and another mask; `constant`: all steps have the same tokens."""
    two = goes_on(batch={1: 7}, weights={1: 7})
    for steps, after in ((two.a[0], 0), (two.b[0], 4)):
        for step, hashes in steps.items():
            if step:
                tokens = sha("tokens" if constant else ("tokens", step + after))
                hashes["batch"] = {"0.0": tokens, "0.1": hashes["batch"]["0"]}
    return two


def counted(name: str, after_resuming: int) -> Two:
    """A resumed run whose optimizer counts its steps."""
    two = goes_on(optimizer={1: 7}, weights={1: 7})
    for offset, steps in ((0, two.a[0]), (4, two.b[0])):
        for step, hashes in steps.items():
            if step:
                hashes["optimizer"][name] = sha(("count", step + offset))
    two.b[0][1]["optimizer"][name] = sha(("count", after_resuming))
    return two


def later(**changed: Any) -> Two:
    """The initial weights of a second optimizer differ; of generators the first state alone is seen."""
    two = plain(without=("batch",), **changed)
    for number, steps in enumerate((*two.a, *two.b)):
        steps[2]["initial weights"] = {"1.w": sha(number)}
        for step in (1, 2, 3, 4):
            del steps[step]["generator"]
    return two


def holding(**held: str) -> Two:
    """A resumed run whose optimizer holds this before its first step."""
    two = goes_on(optimizer={1: 7}, weights={1: 7})
    two.b[0][0]["optimizer"] = {f"w.{name}": code for name, code in held.items()}
    two.a[0][4]["optimizer"]["group 0.lr"] = sha(0.1)  # which a schedule may change before the next step
    return two


def numbers(*changes: dict[str, dict[int, str]], of_a: dict[str, dict[int, str]] | None = None, **changed: Any) -> Two:
    """A run that was resumed after step 4, with scalars; `changes` by name, then by step of the resumed run."""
    two = goes_on(**({"gradients": {1: 7}, "weights": {1: 7}} | changed))
    for offset, steps in ((0, two.a[0]), (4, two.b[0])):
        for step in [step for step in steps if step]:
            n = step + offset
            steps[step]["scalars"] = {
                "backward passes": "4",
                "0.group 0.lr": str(0.1 / n),
                "scaler.scale": "64.0",
                "scaler.backoff_factor": "0.5",
                "scaler.growth_tracker": str(n),
                "StepLR.last_epoch": str(n - 1),
                "StepLR._step_count": str(n),
            }
    for steps, which in ((two.a[0], of_a or {}), *((two.b[0], change) for change in changes)):
        for name, values in which.items():
            for step, text in values.items():
                steps[step]["scalars"][name] = text
    return two


def rounded(channel: str, of_both: bool = False) -> Two:
    """A run that was resumed after step 4 from numbers of bfloat16; `of_both`: the whole run has such there, too."""
    of = {"initial weights": goes_on(initial_weights={0: 7}), "optimizer": holding(momentum=sha(7))}
    two = averaged("a", "b", "c", "d") if channel == "copies" else of[channel]
    step = 5 if channel == "copies" else 4
    two.bfloat16 = {(1, step - 4, channel): [*two.b[0][step - 4][channel]]}
    if of_both:
        ours = channel.replace("initial ", "")
        two.bfloat16[0, step, ours] = [*two.a[0][step][ours]]
    return two


def frozen(of_w: object = "w", resumed: bool = True) -> Two:
    """Runs with two weights, of which the second run has a gradient of one alone in one step."""
    two = goes_on(gradients={1: 7}, weights={1: 7}) if resumed else plain(gradients={2: 7}, weights={2: 7})
    ours, theirs = (two.a[0][5], two.b[0][1]) if resumed else (two.a[0][2], two.b[0][2])
    ours["gradients"] = {"w": sha("w"), "v": sha("v")}
    theirs["gradients"] = {"w": sha(of_w)}
    return two


def drawn_once() -> Two:
    """A run that was resumed with the generator of one step before, which the next step alone draws from."""
    two = goes_on(generator=old("generator", 4, 4), gradients={1: 7})
    two.a[0][6]["generator"] = two.a[0][5]["generator"]
    return two


def of_ranks(state: object) -> Two:
    """Two ranks that were resumed after step 4, the second of them with a generator in this state of the first."""
    second = {step: sha(("second", step)) for step in range(9)}
    whole, rest = straight(8, generator=second), resumed(4, 8, gradients={1: 7})
    rest |= {0: rest[0] | {"generator": whole[0]["generator"]}}
    for step in range(1, 5):
        rest[step]["generator"] = {"python": sha(("first", state, step + 4))}
    first = straight(8, generator={step: sha(("first", 1, step)) for step in range(9)})
    own = resumed(4, 8, generator={step: sha(("first", 1, step + 4)) for step in range(1, 5)})
    return Two([first, whole], [own, rest], True)


def in_the_loss(value: object) -> Two:
    """A run that was resumed after step 4, with a second weight, and what that is there."""
    two = goes_on(gradients={1: 7}, weights={1: 7})
    for offset, steps in ((0, two.a[0]), (4, two.b[0])):
        for step, hashes in steps.items():
            hashes["weights" if step else "initial weights"]["loss.w"] = sha(("loss", step + offset))
    two.b[0][0]["initial weights"]["loss.w"] = sha(("loss", value))
    return two


def averaged(*after_resuming: Any, **changed: Any) -> Two:
    """A run that was resumed after step 4, with an average of the weights; what it is there, in the first steps."""
    two = goes_on(**changed)
    for offset, steps in ((0, two.a[0]), (4, two.b[0])):
        for step in [step for step in steps if step]:
            steps[step]["copies"] = {"ema.w": sha(("average", step + offset))}
    for step, value in enumerate(after_resuming, 1):
        two.b[0][step]["copies"] = {"ema.w": sha(value)}
    return two


UNSEEN = ("gradients", "optimizer")
"""Channels that cannot be seen of updates by hand in JAX."""


def passes(*batches: object, last: int = 2, second: int = 2) -> Two:
    """A run that was resumed after step 4, whose data begin anew at step 7: the first batches of the resumed run."""
    two = goes_on(batch={step: sha(batch) for step, batch in enumerate(batches, 1)}, weights={3: 7})
    two.a[0][2]["batch"] = two.a[0][second]["batch"]
    two.a[0][7]["batch"], two.a[0][8]["batch"] = two.a[0][1]["batch"], two.a[0][last]["batch"]
    return two


WEIGHTS = [("weights", 4), "a", "b", "c"]
"""An average that begins anew from the weights that a resumed run starts with."""
EARLIER = {1: str(0.1 / 1), 2: str(0.1 / 2), 3: str(0.1 / 3), 4: str(0.1 / 4)}
COUNTED = {step: str(step - 1) for step in range(1, 5)}
LONGER = {(0, 1): "8x4", (0, 2): "8x4", (0, 3): "8x6", (0, 4): "8x8", (0, 5): "8x8"}
"""Shapes of the batches of a curriculum."""
SCALED = {"backward passes": {1: "12"}, "scaler.scale": {1: "64.0"}, "scaler.growth_tracker": {1: "0"}}


def two_parameters(*held: object) -> Two:
    """A resumed run whose optimizer holds these values of two parameters before its first step."""
    two = goes_on(optimizer={1: 7}, weights={1: 7})
    for steps in (two.a[0], two.b[0]):
        for step, hashes in steps.items():
            if step:
                hashes["optimizer"]["v.momentum"] = sha(("v", step + (4 if steps is two.b[0] else 0)))
    names = ("w.momentum", "v.momentum")
    two.b[0][0]["optimizer"] = {name: sha(value) for name, value in zip(names, held, strict=True)}
    return two


def changing(code: object, *, of_b: bool, resumed: bool = False) -> Two:
    """Runs in whose second step, or that after a resume, something has changed the weights before: in both, or in A alone."""
    two = goes_on() if resumed else plain()
    for steps in (*two.a, *two.b):
        for step in [step for step in steps if step]:
            steps[step]["changed weights"] = {}
    step = 5 if resumed else 2
    two.a[0][step]["changed weights"] = {"w": sha(code)}
    if of_b:
        two.b[0][1 if resumed else step]["changed weights"] = {"w": sha(7)}
    return two


def renamed(two: Two) -> Two:
    """The same with a generator of the model's own, as dropout's in JAX."""
    for steps in (*two.a, *two.b):
        for hashes in steps.values():
            hashes["generator"] = {"dropout.rngs.count": next(iter(hashes["generator"].values()))}
    return two


MOMENTUM_ALONE = goes_on(optimizer={1: sha(("gradients", 5))}, weights={1: 7})
SWAPPED = plain(batch={1: sha(("batch", 2)), 2: sha(("batch", 1))}, weights={1: 7})

RULES = {
    "end of training not restored": (calling_back(10), calling_back(10, value="5")),
    "callback not restored": (
        calling_back(8, "ReduceLROnPlateau.wait", optimizer={3: 7}, weights={3: 7}),
        calling_back(8, "ReduceLROnPlateau.wait", value="5", optimizer={3: 7}, weights={3: 7}),
    ),
    "one run ends sooner": (Two([straight(4)], [straight(3)]), Two([straight(4)], [straight(3, weights={2: 7})])),
    "processes train the same weights": (
        Two([straight(), shared(2)], [straight(), shared(3)], False, ranks=False),
        Two([straight(), shared(2)], [straight(weights={1: 7}), shared(2)], False, ranks=False),
    ),
    "one begins later": (Two(counting(0), counting(5), False), plain(weights={1: 7})),
    "started from an earlier run": (Two([straight()], [resumed(2)], False), plain(initial_weights={0: 7})),
    "ranks went on after different steps": (
        Two([straight(8)] * 2, [resumed(4, 8, weights={1: 7}), resumed(5, 8, weights={1: 7})], True),
        Two([straight(8)] * 2, [resumed(4, 8, weights={1: 7}), resumed(6, 8, initial_weights={0: 7})], True),
    ),
    "rounded by the checkpoint": (rounded("initial weights"), rounded("initial weights", of_both=True)),
    "gradients missing": (frozen(), frozen(of_w=7)),
    "nothing is drawn": (
        goes_on(generator=old("generator", 4, 4), gradients={1: 7}),
        goes_on(generator=old("generator", 4, 5), gradients={1: 7}),
    ),
    "weights of the beginning": (in_the_loss(0), in_the_loss(7)),
    "generator of another process": (of_ranks(1), of_ranks(7)),
    "generator not restored": (
        goes_on(generator=old("generator", 1), weights={1: 7}),
        goes_on(generator=old("generator", 7), weights={1: 7}),
    ),
    "generator drew more": (
        plain(generator=old("generator", 3), weights={1: 7}),
        plain(generator={2: 7}, weights={2: 7}),
    ),
    "old batches again": (
        goes_on(batch=old("batch", 1, 2, 3), weights={1: 7}),
        goes_on(batch=old("batch", 1, 2), weights={1: 7}),
    ),
    "resumed with an old batch": (
        goes_on(batch=old("batch", 1), weights={1: 7}),
        goes_on(batch={1: 7}, weights={1: 7}),
    ),
    "batch of the first shape": (
        replace(goes_on(batch={1: 7}, gradients={1: 7}), shapes=LONGER | {(1, 1): "8x4"}),
        replace(goes_on(batch={1: 7}, gradients={1: 7}), shapes=LONGER | {(1, 1): "8x6"}),
    ),
    "resumed with an unknown state": (
        goes_on(generator={1: 7}, weights={1: 7}),
        goes_on(batch={1: 7}, weights={1: 7}),
    ),
    "part of a batch": (masked(constant=False), masked(constant=True)),
    "resumed elsewhere in the data": (goes_on(batch={1: 7}, weights={1: 7}), plain(batch={1: 7}, weights={1: 7})),
    "generators differ from the start": (
        plain(generator={0: 7, 1: 7}, weights={1: 7}),
        plain(generator={3: 7}, weights={3: 7}),
    ),
    "generator draws other numbers": (
        plain(generator={3: 7}, weights={3: 7}),
        plain(generator={3: sha(("generator", 2))}, weights={3: 7}),
    ),
    "another batch without a seed": (
        Two(
            [{0: straight()[0], 1: less(straight(1), ("generator",))[1]}],
            [{0: straight(generator={0: 7})[0], 1: less(straight(1, batch={1: 7}, weights={1: 7}), ("generator",))[1]}],
            False,
        ),
        plain(batch={1: 7}, weights={1: 7}),
    ),
    "another batch of unseeded tensorflow": (
        plain("tensorflow", batch={1: 7}, weights={1: 7}),
        plain("torch", batch={1: 7}, weights={1: 7}),
    ),
    "batches in another order": (SWAPPED, plain(batch={1: 7}, weights={1: 7})),
    "another batch": (plain(batch={1: 7}, weights={1: 7}), SWAPPED),
    "resumed place kept for another epoch": (
        passes(("batch", 5), ("batch", 6), ("batch", 5)),
        passes(("batch", 5), ("batch", 6), ("batch", 6)),
    ),
    "resumed order came again": (
        goes_on(batch={3: ("batch", 5), 4: ("batch", 6)}, weights={3: 7}),
        goes_on(batch={3: ("batch", 5), 4: ("batch", 7)}, weights={3: 7}),
    ),
    "resumed and differs later": (goes_on(batch={3: 7}, weights={3: 7}), plain(batch={3: 7}, weights={3: 7})),
    "loss scale not restored": (
        numbers(SCALED, of_a={"scaler.scale": {1: "256.0"}}),
        numbers({"backward passes": {1: "12"}, "scaler.scale": {1: "16.0"}, "scaler.growth_tracker": {1: "0"}}),
    ),
    "accumulation window not saved": (
        numbers({"backward passes": {1: "2"}}),
        numbers({"backward passes": dict.fromkeys(range(1, 5), "2")}),
    ),
    "schedule not restored": (
        numbers({"0.group 0.lr": EARLIER, "StepLR.last_epoch": COUNTED}),
        numbers({"0.group 0.lr": dict.fromkeys(range(1, 5), "0.3")}),
    ),
    "other numbers of a step": (
        numbers({"0.group 0.lr": dict.fromkeys(range(1, 5), "0.3")}),
        numbers({"StepLR.last_epoch": COUNTED}),
    ),
    "average not restored": (averaged(*WEIGHTS), averaged("a", "b", "c", "d")),
    "other copies": (averaged("a", "b", "c", "d"), averaged(*WEIGHTS)),
    "resumed from other weights": (goes_on(initial_weights={0: 7}), plain(initial_weights={0: 7})),
    "resumed without a change": (changing(8, of_b=False, resumed=True), changing(8, of_b=True)),
    "optimizer state of other parameters": (
        two_parameters(("v", 4), ("optimizer", 4)),
        two_parameters(("v", 4), ("v", 4)),
    ),
    "optimizer state of another step": (
        two_parameters(("optimizer", 4), ("v", 5)),
        two_parameters(("optimizer", 3), ("v", 5)),
    ),
    "accumulated gradients not restored": (
        accumulating(mini_step=1, acc_grads=7),
        accumulating(mini_step=1, acc_grads=7, gradient_step=0, inner=0),
    ),
    "optimizer of a first step": (
        goes_on(("gradients",), optimizer={1: sha(("optimizer", 1))}, weights={1: 7}),
        goes_on(("gradients",), optimizer={1: sha(("optimizer", 2))}, weights={1: 7}),
    ),
    "buffers of a first step": (
        goes_on(buffers={1: sha(("buffers", 1))}),
        goes_on(buffers={1: sha(("buffers", 2))}),
    ),
    "buffers stay": (
        goes_on(gradients={1: 7}, buffers={1: sha(("buffers", 4))}),
        goes_on(gradients={1: 7}, buffers={1: sha(("buffers", 3))}),
    ),
    "own generator not restored": (
        renamed(goes_on(generator=old("generator", 1), weights={1: 7})),
        renamed(goes_on(generator=old("generator", 7), weights={1: 7})),
    ),
    "optimizer starts from another state": (holding(), holding(momentum=sha(("optimizer", 4)))),
    "watched state not restored": (watched("watch.a"), watched("watch.a", "watch.b")),
    "resumed to other weights": (
        goes_on(("gradients",), optimizer={1: 7}, weights={1: 7}),
        goes_on(optimizer={1: 7}, weights={1: 7}),
    ),
    "optimizer began again": (MOMENTUM_ALONE, goes_on(optimizer={1: 7}, weights={1: 7})),
    "optimizer not restored": (goes_on(optimizer={1: 7}, weights={1: 7}), counted("w.step", 1)),
    "unseen optimizer not restored": (goes_on(("optimizer",), weights={1: 7}), goes_on(weights={1: 7})),
    "learning rate not restored": (goes_on(weights={1: 7}), goes_on(("optimizer",), weights={1: 7})),
    "optimizer holds more than its state": (numbers(gradients={}), goes_on(weights={1: 7})),
    "rate stays": (
        numbers({"0.group 0.lr": dict.fromkeys(range(1, 5), str(0.1 / 5))}, gradients={}, weights={2: 7}),
        numbers({"0.group 0.lr": {2: str(0.1 / 5)}}, gradients={}, weights={2: 7}),
    ),
    "buffers not restored": (goes_on(buffers={1: 7}), plain(buffers={1: 7})),
    "resumed with other gradients": (goes_on(gradients={1: 7}), goes_on(gradients={2: 7})),
    "initial weights without a seed": (
        later(generator={0: 7}),
        later(),
    ),
    "initial weights of unseeded tensorflow": (
        plain("tensorflow", initial_weights={0: 7}),
        plain(initial_weights={0: 7}),
    ),
    "other initial weights": (plain(initial_weights={0: 7}), plain("tensorflow", initial_weights={0: 7})),
    "weights changed between steps": (changing(8, of_b=True), changing(8, of_b=False, resumed=True)),
    "operation gives other bits": (replace(plain(gradients={2: 7}), sampled=True), plain(gradients={2: 7})),
    "optimizer gives other weights": (
        plain(optimizer={2: 7}, weights={2: 7}),
        plain(without=("gradients",), optimizer={2: 7}),
    ),
    "step gives other results": (plain(gradients={2: 7}), plain(weights={2: 7})),
    "other buffers": (plain(buffers={2: 7}), plain(gradients={2: 7}, buffers={2: 7})),
}
"""By rule: one that it is right about, and one that another rule must get."""


def test_every_rule_is_among_them() -> None:
    assert {*RULES} == {rule.name for rule in reasons.RULES}


def test_rules_that_hashes_prove_are_no_guess_and_others_are(tmp_path: Path) -> None:
    for rule in reasons.RULES:
        known = reasons.reason(RULES[rule.name][0].difference(tmp_path / rule.name))
        assert known.guess == str(known).endswith("(a guess)") == (rule.evidence == GUESS)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_right_and_a_look_alike_does_not_get_it(name: str, tmp_path: Path) -> None:
    right, alike = RULES[name]
    assert reasons.reason(right.difference(tmp_path / "right")).rule == name
    assert reasons.reason(alike.difference(tmp_path / "alike")).rule != name


def test_a_resumed_generator_in_the_state_of_a_later_step_was_restored(tmp_path: Path) -> None:
    """As where batches are passed over that the run has trained on: it drew more."""
    why = reasons.reason(goes_on(generator=old("generator", 7), weights={1: 7}).difference(tmp_path))
    assert why.rule == "generator drew more"
    assert why.text.endswith("is that of step 7 of the whole run: until then it drew more, or was set forward")


@pytest.mark.parametrize(
    ("name", "alike"),
    [
        ("accumulation window not saved", numbers({}, of_a={"backward passes": {5: "8"}})),
        ("accumulation window not saved", numbers({"backward passes": {1: "2"}}, gradients={})),
        ("accumulation window not saved", numbers(SCALED)),
        ("schedule not restored", numbers({"0.group 0.lr": {1: "0.3"}, "StepLR._step_count": {1: "1"}})),
        ("average not restored", averaged(*WEIGHTS, generator=old("generator", 1))),
        ("loss scale not restored", numbers({"backward passes": {1: "2"}})),
        ("loss scale not restored", numbers({}, of_a={"backward passes": {5: "8"}})),
        ("resumed place kept for another epoch", goes_on(batch=old("batch", 5, 6, 5), weights={3: 7})),
        (
            "resumed place kept for another epoch",
            passes(("batch", 5), ("batch", 6), ("batch", 5), last=3),
        ),  # in any order
        ("resumed place kept for another epoch", passes(("batch", 5), ("batch", 5))),  # at no border
        (
            "resumed place kept for another epoch",
            passes(("batch", 5), ("batch", 6), ("batch", 5), second=3),
        ),  # few batches
        ("resumed place kept for another epoch", passes(("batch", 1), ("batch", 6), ("batch", 1))),
        ("buffers of a first step", goes_on(buffers={1: sha(("buffers", 1))}, weights={1: 7})),  # from equal gradients
        ("buffers of a first step", goes_on(UNSEEN, buffers={1: sha(("buffers", 2))}, weights={1: 7})),
        ("buffers not restored", goes_on(buffers={1: 7}, weights={1: 7})),
        ("rounded by the checkpoint", rounded("optimizer", of_both=True)),
        ("rounded by the checkpoint", rounded("copies", of_both=True)),
        ("nothing is drawn", drawn_once()),
        ("nothing is drawn", goes_on(generator=old("generator", 4, 4), batch={1: 7}, gradients={1: 7})),
        ("optimizer holds more than its state", numbers({"0.group 0.lr": {1: "0.3"}}, gradients={})),
        ("optimizer holds more than its state", numbers(optimizer={1: 7}, gradients={})),
        (
            "batch of the first shape",  # that of an incomplete last batch, once more
            replace(goes_on(batch={1: 7}, gradients={1: 7}), shapes=LONGER | {(0, 4): "8x4", (1, 1): "8x4"}),
        ),
        (
            "buffers stay",
            replace(goes_on(gradients={1: 7}, buffers={1: sha(("buffers", 4))}), framework="jax"),
        ),
        ("gradients missing", frozen(of_w=7, resumed=False)),
        ("end of training not restored", calling_back(10, "StepLR.last_epoch")),
        ("callback not restored", goes_on(optimizer={3: 7}, weights={3: 7})),
        ("callback not restored", calling_back(8, optimizer={3: 7}, weights={3: 7})),  # of early stopping
        (
            "callback not restored",
            calling_back(8, "ReduceLROnPlateau.wait", optimizer={1: 7}, weights={1: 7}),
        ),  # too early for it
        ("accumulated gradients not restored", accumulating(acc_grads=7)),  # it may be of another batch
        ("accumulated gradients not restored", accumulating((), acc_grads=7, inner=7)),
    ],
)
def test_other_look_alikes(name: str, alike: Two, tmp_path: Path) -> None:
    assert reasons.reason(alike.difference(tmp_path)).rule != name


@pytest.mark.parametrize(("first", "right"), [(5, True), (1, False)])
def test_a_scale_that_skips_the_first_steps_of_a_resumed_run(first: int, right: bool, tmp_path: Path) -> None:
    """Its first step takes their batches, too, and the whole run skips a later step itself."""
    two = numbers(SCALED, of_a={"scaler.scale": {1: "256.0"}, "backward passes": {6: "8"}}, batch={1: 7})
    two.a[0][6]["batch"] = {"0": sha(("batch", 6)), "1": sha(("batch", 7))}
    two.a[0][7]["batch"] = {"0": sha(("batch", 8))}
    two.b[0][1]["batch"] = {str(place): sha(("batch", step)) for place, step in enumerate((first, 6, 7))}
    why = reasons.reason(two.difference(tmp_path))
    assert (why.rule == "loss scale not restored") == right


@pytest.mark.parametrize("channel", ["optimizer", "copies"])
def test_any_state_may_be_rounded(channel: str, tmp_path: Path) -> None:
    assert reasons.reason(rounded(channel).difference(tmp_path)).rule == "rounded by the checkpoint"


def test_a_change_of_weights_may_be_a_cast(tmp_path: Path) -> None:
    two = changing(8, of_b=True)
    two.bfloat16[1, 2, "changed weights"] = ["w"]
    assert str(reasons.reason(two.difference(tmp_path))).endswith(
        "something other than the optimizer changed them, in the second run to numbers of bfloat16 alone, such as a cast and back"
    )


def test_gradients_may_be_missing_in_any_run(tmp_path: Path) -> None:
    why = str(reasons.reason(frozen(resumed=False).difference(tmp_path)))
    assert why.startswith(
        "the second run computes no gradients of `v` at step 2, as the first run does, and all others are equal"
    )


def test_state_beside_the_weights_of_a_compiled_step_decides_what_comes_of_it(tmp_path: Path) -> None:
    """As a momentum that a script carries on by hand in JAX."""
    two = goes_on(UNSEEN, buffers={1: sha(("buffers", 1))}, weights={1: 7})
    assert str(reasons.reason(two.difference(tmp_path))) == (
        "from equal weights and an equal batch the resumed run arrives at different ones (`w`); "
        "the buffers `mean` at step 1 of the resumed run are those at step 1 of the whole run: they were not restored"
    )


def test_other_buffers_of_a_compiled_step_may_be_why(tmp_path: Path) -> None:
    why = reasons.reason(goes_on(UNSEEN, buffers={1: 7}, weights={1: 7}).difference(tmp_path))
    assert why.guess and "the optimizer's state, buffers that differ (`mean`), or what" in why.text


@pytest.mark.parametrize(
    ("two", "said"),
    [
        (
            numbers(gradients={1: 7}),
            " and an equal batch, though generators, buffers, numbers of the step are equal: "
            "what the loss or the network holds beside weights and buffers, as a queue or a temperature was not restored",
        ),
        (
            goes_on(("batch", "generator", "buffers"), gradients={1: 7}),
            " (the batch cannot be seen): the place in the data, or dropout that draws again, or buffers, "
            "or the mode (train or eval), or a scale, or what the loss or the network holds",
        ),
    ],
    ids=["equal", "unseen"],
)
def test_a_guess_about_other_gradients_names_nothing_that_is_equal(two: Two, said: str, tmp_path: Path) -> None:
    assert f"differ from equal weights{said}" in str(reasons.reason(two.difference(tmp_path)))


def test_a_resumed_run_that_takes_as_many_steps_as_a_whole_one(tmp_path: Path) -> None:
    why = reasons.reason(calling_back(12, value="5").difference(tmp_path))
    assert str(why) == (
        "all steps are equal until the whole run ends after step 8, or the resumed run after step 12; "
        "the resumed run takes 8 steps, as many as the whole run in all: what ends the training was not restored"
    )


@pytest.mark.parametrize(("best", "rule"), [("None", "files of a callback"), ("5", "files alone")])
def test_files_of_a_resumed_run_whose_best_value_began_anew(best: str, rule: str, tmp_path: Path) -> None:
    two = calling_back(8, "ModelCheckpoint.best", best)
    two.a[0][1]["scalars"]["ModelCheckpoint.best"] = "None"
    a, b = (
        record.read(write(tmp_path / name, *steps, outputs={"{run}/best.h5": sha(name)}))
        for name, steps in (("a", two.a), ("b", two.b))
    )
    difference = first_difference(a, b, True)
    assert difference
    why = reasons.reason(difference)
    assert (why.rule, why.guess) == (rule, True)


@pytest.mark.parametrize(
    "two",
    [
        accumulating((), acc_grads=7),  # as Keras, whose gradients of a step are seen
        accumulating(mini_step=1, acc_grads=7, inner=7),  # where the whole run ends its window
    ],
)
def test_windows_of_accumulated_gradients(two: Two, tmp_path: Path) -> None:
    assert reasons.reason(two.difference(tmp_path)).rule == "accumulated gradients not restored"


def test_batches_of_a_loader_that_asks_for_one_ahead_as_it_begins(tmp_path: Path) -> None:
    two = goes_on(batch=old("batch", 1, 2, 3), weights={1: 7})
    for steps in (two.a[0], two.b[0]):
        steps[1]["batch"]["1"] = sha("ahead")
    assert reasons.reason(two.difference(tmp_path)).rule == "old batches again"


@pytest.mark.parametrize(("without", "place"), [(("batch",), True), ((), False)])
def test_other_gradients_may_be_of_another_place_only_where_no_batch_is_seen(
    without: tuple[str, ...], place: bool, tmp_path: Path
) -> None:
    why = reasons.reason(goes_on(without, gradients={1: 7}).difference(tmp_path))
    assert ("the place in the data" in why.text) == place


def test_a_key_may_not_decide_where_the_batch_cannot_be_seen(tmp_path: Path) -> None:
    two = renamed(goes_on(("batch",), generator=old("generator", 1), weights={1: 7}))
    assert reasons.reason(two.difference(tmp_path)).guess


@pytest.mark.parametrize(("count", "guess"), [(0, False), (2, True)])
def test_an_average_that_is_made_anew_counts_anew(count: int, guess: bool, tmp_path: Path) -> None:
    two = averaged(*WEIGHTS)
    for before, steps in ((0, two.a[0]), (count, two.b[0])):
        for step in [step for step in steps if step]:
            steps[step]["copies"]["ema.n_averaged"] = sha(before + step - 1)
    assert reasons.reason(two.difference(tmp_path)).guess == guess


def test_a_schedule_that_shows_many_steps_later(tmp_path: Path) -> None:
    """As ReduceLROnPlateau, whose counter of bad epochs was not saved."""
    two = numbers({"0.group 0.lr": {3: "0.5"}, "StepLR.last_epoch": COUNTED}, gradients={}, weights={3: 7})
    assert str(reasons.reason(two.difference(tmp_path))) == (
        f"`0.group 0.lr` at step 3 of the resumed run is 0.5, not {0.1 / 7}, and `StepLR.last_epoch` at step 1 of the "
        "resumed run is 0, that of step 1 of the whole run, not 4: the schedule was not restored"
    )


def test_a_schedule_that_shows_one_step_late_is_named(tmp_path: Path) -> None:
    """The optimizer's own rate was restored, the schedule that sets the next one was not."""
    two = goes_on(weights={2: 7})
    for start, steps in ((0, two.a[0]), (4, two.b[0])):
        for step, hashes in steps.items():
            if step:
                hashes["scalars"] = {"0.group 0.lr": str(0.1 / (step + start))}
    two.b[0][2]["scalars"] = {"0.group 0.lr": str(0.1 / 2)}
    assert reasons.reason(two.difference(tmp_path)).rule == "schedule not restored"
