"""Two records that differ as a cause of each kind has it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from repro.compare.difference import Difference, first_difference
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
