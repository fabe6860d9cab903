"""Causes that further runs test: what holds, and what only looks like it."""

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from repro.compare.difference import Among, first_difference
from repro.inject import changes
from repro.record import record
from repro.verify.causes import HYPOTHESES
from repro.verify.command import OwnCommand
from repro.verify.decision import Decision
from repro.verify.hypotheses import Hypothesis, chance
from repro.verify.questions import BASELINE, REPEAT, Change
from repro.verify.trial import Command, Trial, run_name
from support.commands import straight, write

FIRST, LATE, SEED, NUMBERS, SET, ORIGIN, MEMORY, ADDRESSES, DRAWS, RACE, LIMIT = HYPOTHESES


class Runs:
    """Runs whose last weights, or whose number of steps, a function gives."""

    def __init__(self, folder: Path, outcome: Callable[[Change], object], steps: Callable[[Change], int] | None = None):
        self.folder, self.outcome, self.steps = folder, outcome, steps
        self.made: list[str] = []
        self.leaves, self.slows, self.draws = ["cache"], ["threads"], ["torch"]
        self.plain = [self(BASELINE), self(REPEAT)]

    def __call__(self, change: Change, against: Trial | None = None) -> Trial:
        outcome = self.outcome(change)
        hashes = straight(self.steps(change)) if self.steps else straight(2, batch={1: outcome}, weights={1: outcome})
        self.made.append(change.label)
        path = write(self.folder / str(len(self.made)), hashes)
        left = self.leaves if change.caches == "emptied" else []
        variable, value = change.environment[0] if change.environment else ("", "")
        slowed = self.slows if variable == "REPRO_DELAYS" else []
        changed = self.draws if value.startswith("draws=") else []
        return Trial(change, Command(["x"]), path, record=record.read(path), left=left, slowed=slowed, changed=changed)

    def test(self, hypothesis: Hypothesis) -> str | None:
        a, b = (trial.record for trial in self.plain)
        difference = first_difference(a, b, False) if a and b else None
        assert difference and hypothesis.suits(difference)
        shown = hypothesis.test(difference, self.plain, self)
        return shown.text if shown else None


def held(change: Change) -> object:
    """What differs in each run unless a variable holds it."""
    return change.environment[0][1] if change.environment else change.label


def test_the_order_of_a_set_is_named_once_each_seed_has_one_order(tmp_path: Path) -> None:
    runs = Runs(tmp_path, held)
    assert runs.test(SET) == (
        "the order of a set, or hash(), decides: 3 runs with PYTHONHASHSEED=0 are the same, 2 runs with PYTHONHASHSEED=77 "
        "are the same, and one value's runs are not those of another; sort the set, or set PYTHONHASHSEED"
    )


@pytest.mark.parametrize("hypothesis", [SEED, ORIGIN, SET, MEMORY, ADDRESSES], ids=lambda one: one.name)
def test_a_race_is_none_of_them(hypothesis: Hypothesis, tmp_path: Path) -> None:
    runs = Runs(tmp_path, lambda change: change.label)
    assert runs.test(hypothesis) is None and len(runs.made) == 4


@pytest.mark.parametrize("hypothesis", [SEED, ORIGIN, SET, MEMORY, ADDRESSES], ids=lambda one: one.name)
def test_nor_is_what_any_value_makes_the_same(hypothesis: Hypothesis, tmp_path: Path) -> None:
    """Something in the variable's presence, or chance: no value decides."""
    assert Runs(tmp_path, lambda change: bool(change.environment) or change.label).test(hypothesis) is None


@pytest.mark.parametrize("start", range(8))
def test_a_race_of_two_results_seldom_looks_like_a_set(start: int, tmp_path: Path) -> None:
    """Each of these is refuted; two equal runs with one value would have been believed of half of them."""
    coin = random.Random(start)
    outcomes = iter([0, 1, *(coin.randrange(2) for _ in range(20))])
    assert Runs(tmp_path, lambda change: next(outcomes)).test(SET) is None


@pytest.mark.parametrize(("differ_at", "said"), [(None, None), (4, "step 4"), (3, "step 3")], ids=str)
def test_values_that_differ_later_than_baseline_runs_are_no_other_cause(
    differ_at: int | None, said: str | None, tmp_path: Path
) -> None:
    """Runs without a value differ at step 1, those with two values at step 3; with one value nowhere, or where another cause decides."""
    made: list[Change] = []

    def run(change: Change, against: Trial | None = None) -> Trial:
        made.append(change)
        changed: dict[str, dict[int, object]] = {"batch": {}, "weights": {}}
        for of in changed.values():
            of |= {} if change.environment else {1: len(made)}
            of |= {3: held(change)} if change.environment else {}
            of |= {differ_at: len(made)} if differ_at else {}
        path = write(tmp_path / str(len(made)), straight(4, **changed))
        return Trial(change, Command(["x"]), path, record=record.read(path))

    plain = [run(BASELINE), run(REPEAT)]
    divergence = (
        first_difference(plain[0].record, plain[1].record, False) if plain[0].record and plain[1].record else None
    )
    assert divergence and divergence.step == 1
    shown = SET.test(divergence, plain, run)
    if differ_at == 3:  # nothing tells the values apart
        assert shown is None
    else:
        assert shown and shown.alone == (said is None)
        assert said is None or f"what differs from {said} on has another cause" in shown.text


def test_few_orders_take_more_runs(tmp_path: Path) -> None:
    """A set of two: baseline runs have the orders of the two seeds."""
    runs = Runs(
        tmp_path, lambda change: change.environment[0][1] in "0 5" if change.environment else change == BASELINE
    )
    assert "the order of a set" in (runs.test(SET) or "")
    assert len(runs.made) > 7


@pytest.mark.parametrize(
    ("counts", "groups", "share"),
    [([1, 1, 2, 2], [2, 2], 1 / 45), ([1, 1, 3, 2], [3, 2], 1 / 210), ([5], [2], 1.0), ([1, 1], [2], 0.0)],
)
def test_the_share_of_all_ways_to_deal_outcomes(counts: list[int], groups: list[int], share: float) -> None:
    assert chance(counts, groups) == pytest.approx(share)  # not bits: a threshold is compared with it


def factor(change: Change) -> int:
    return int(change.environment[0][1].partition("=")[2]) if change.environment else 1


def test_fewer_steps_by_a_faster_clock_show_a_limit_of_time(tmp_path: Path) -> None:
    runs = Runs(tmp_path, held, lambda change: 80 // factor(change) + (change == REPEAT))
    assert runs.test(LIMIT) == (
        "the number of steps depends on the time that they take: "
        "80 and 81 steps, 20 and 20 with clock=4, 5 and 5 with clock=16; train for a number of steps"
    )


def test_a_number_of_steps_that_chance_decides_is_no_limit_of_time(tmp_path: Path) -> None:
    lengths = iter([80, 81, 30, 70])
    assert Runs(tmp_path, held, lambda change: next(lengths)).test(LIMIT) is None


def test_only_the_first_run_differs_where_runs_with_emptied_caches_are_as_it_was(tmp_path: Path) -> None:
    runs = Runs(tmp_path, lambda change: change == BASELINE or change.caches == "emptied")
    assert runs.test(FIRST) == (
        "only the first run differs, so what it left decides: `cache`; runs 2, 3 and 4 are the same, and so are run 1 and "
        "two with emptied caches; empty it before each run, or keep it for all"
    )
    assert len(runs.made) == 6


@pytest.mark.parametrize(
    "outcomes", ["aba", "abbb", "abbaa", "abbabb"], ids=["third run", "emptied caches", "fourth run", "once more"]
)
def test_one_of_two_outcomes_by_chance_is_no_first_run(outcomes: str, tmp_path: Path) -> None:
    """The runs as they come: first, second, third, emptied, fourth, emptied."""
    each = iter(f"{outcomes}-----")
    runs = Runs(tmp_path, lambda change: next(each))
    assert runs.test(FIRST) is None


def test_a_run_that_leaves_nothing_explains_nothing(tmp_path: Path) -> None:
    runs = Runs(tmp_path, lambda change: change == BASELINE or change.caches == "emptied")
    runs.leaves = []
    assert runs.test(FIRST) is None


def test_each_value_has_a_run_of_its_own() -> None:
    """A run is known by its name, in which some characters of a label are lost."""
    for hypothesis in HYPOTHESES:
        assert len({*map(run_name, hypothesis.values)}) == len(hypothesis.values)


def test_a_race_is_one_where_delays_decide(tmp_path: Path) -> None:
    runs = Runs(tmp_path, held)
    assert str(runs.test(RACE)).startswith("threads, workers or ranks race: which of them comes first decides: ")
    runs.slows = []
    assert runs.test(RACE) is None


def test_threads_that_draw_are_named_with_their_generator_where_one_of_each_task_decides(tmp_path: Path) -> None:
    runs = Runs(tmp_path, held)
    assert str(runs.test(DRAWS)).startswith(
        "threads draw from one generator, in an order that changes from run to run (`torch`): 3 runs with draws=0"
    )


@pytest.mark.parametrize("draws", [["torch"], []], ids=["the order of results changes, too", "no thread draws"])
def test_threads_that_draw_decide_nothing_where_runs_differ_all_the_same(draws: list[str], tmp_path: Path) -> None:
    runs = Runs(tmp_path, held if not draws else lambda change: change.label)
    runs.draws = draws
    assert runs.test(DRAWS) is None and len(runs.made) == (5 if draws else 3)


def test_addresses_decide_where_each_place_has_one_result(tmp_path: Path) -> None:
    runs = Runs(tmp_path, held)
    assert str(runs.test(ADDRESSES)).startswith(
        "where objects lie in memory decides, as in the order of a set of objects"
    )
    assert ("PYTHONHASHSEED", "0") in ADDRESSES.values[0].environment  # else the hashes of strings move objects


@pytest.mark.parametrize(("channel", "suits"), [("scalars", True), ("gradients", False)])
def test_time_is_asked_about_where_a_number_of_a_step_differs(channel: str, suits: bool, tmp_path: Path) -> None:
    runs = [straight(2, gradients={1: number}, weights={1: number}) for number in (1, 2)]
    for number, steps in enumerate(runs):
        steps[1]["scalars"] = {"0.group 0.lr": str(number if channel == "scalars" else 7)}
    a, b = (record.read(write(tmp_path / str(number), steps)) for number, steps in enumerate(runs))
    difference = first_difference(a, b, False)
    assert difference and difference.channel == channel
    assert NUMBERS.suits(difference) == suits


@pytest.mark.parametrize(("overtaken", "tested"), [(None, True), ((1, "the first run", 4, 2), False)])
def test_where_processes_race_nothing_is_tested(
    overtaken: tuple[int, str, int, int] | None, tested: bool, tmp_path: Path
) -> None:
    runs = Runs(tmp_path, held)
    a, b = (trial.record for trial in runs.plain)
    difference = first_difference(a, b, False) if a and b else None
    assert difference
    difference.among = Among(1, 2, overtaken)
    own = OwnCommand(Command(["x"]), ["restart"], tmp_path)
    Decision(own, lambda name: runs([*own.further][-1])).why(difference, runs.plain[0], runs.plain[1])
    assert bool(own.further) == tested


@pytest.mark.parametrize("chance", [False, True])
def test_what_the_first_run_alone_has_is_no_matter_of_what_is_changed_later(chance: bool, tmp_path: Path) -> None:
    """... though no cache explains it: more runs say so, unless one of them is another one, too."""
    runs = Runs(tmp_path, lambda change: change == BASELINE or (chance and change.label.startswith("seed=77")))
    runs.leaves = []
    a, b = (trial.record for trial in runs.plain)
    difference = first_difference(a, b, False) if a and b else None
    assert difference
    own, made = OwnCommand(Command(["x"]), ["restart"], tmp_path / "own"), dict[str, Trial]()

    def run(name: str) -> Trial:
        change = next(change for change in own.further if run_name(change) == name)
        return made.setdefault(name, made.get(name) or runs(change))

    why = Decision(own, run).why(difference, *runs.plain)
    assert ("only the first run differs from 9 later ones, whatever was changed in these" in why) != chance
    assert (len(made) == 8) != chance


@pytest.mark.parametrize(
    ("slows", "left"),
    [(["threads"], "threads, workers or ranks run beside the first thread"), ([], "a folder's listing")],
    ids=["beside", "alone"],
)
def test_a_guess_names_nothing_that_runs_have_refuted(slows: list[str], left: str, tmp_path: Path) -> None:
    runs = Runs(tmp_path, lambda change: change.label)
    runs.slows = slows
    a, b = (trial.record for trial in runs.plain)
    difference = first_difference(a, b, False) if a and b else None
    assert difference
    own, made = OwnCommand(Command(["x"]), ["restart"], tmp_path), dict[str, Trial]()

    def run(name: str) -> Trial:
        change = next(change for change in own.further if run_name(change) == name)
        if name not in made:
            made[name] = runs(change)
        return made[name]

    why = Decision(own, run).why(difference, *runs.plain)
    assert why.startswith(
        "each run has other batches, though the generators that can be seen are equal, and two runs differ all the same with "
        "each of seed=0 at the start, PYTHONHASHSEED=0, seed=0,origin=0 (time, process number and entropy held), "
        f"MALLOC_PERTURB_=195, place=1 (addresses held): {left}"
    )
    assert why.endswith("may decide (a guess)") and "set or hash" not in why


def test_a_cause_that_runs_could_not_test_is_still_a_guess(tmp_path: Path) -> None:
    """As where each run fails, or none is left."""
    runs = Runs(tmp_path, lambda change: change.label)
    a, b = (trial.record for trial in runs.plain)
    difference = first_difference(a, b, False) if a and b else None
    assert difference
    own = OwnCommand(Command(["x"]), ["restart"], tmp_path)
    failed = Trial(BASELINE, Command(["x"]), tmp_path, error="it failed")
    assert "set or hash" in Decision(own, lambda name: failed).why(difference, *runs.plain)


def test_a_cause_whose_run_fails_is_said_not_to_be_tested_and_the_others_are(tmp_path: Path) -> None:
    runs = Runs(tmp_path, lambda change: change.label)
    a, b = (trial.record for trial in runs.plain)
    difference = first_difference(a, b, False) if a and b else None
    assert difference
    own, made = OwnCommand(Command(["x"]), ["restart"], tmp_path), dict[str, Trial]()

    def run(name: str) -> Trial:
        change = next(change for change in own.further if run_name(change) == name)
        failed = Trial(change, Command(["x"]), tmp_path, error="it ended with code 1: addresses cannot be held")
        return made.setdefault(name, made.get(name) or (failed if "place" in name else runs(change)))

    why = Decision(own, run).why(difference, *runs.plain)
    assert why.endswith("(a guess); addresses could not be tested: it ended with code 1: addresses cannot be held")
    assert "place=1" not in why and any("repro-delays" in name for name in made)


def test_a_seed_at_the_start_reaches_generators_that_are_made_without_one() -> None:
    state = random.getstate()
    try:
        changes.seed("3")
        first = random.random()
        changes.seed("3")
        assert random.random() == first
    finally:
        random.setstate(state)
    made: list[object] = []
    numpy = SimpleNamespace(random=SimpleNamespace(seed=made.append, default_rng=lambda seed=None: seed))
    changes._seed_numpy(numpy, 3)  # type: ignore[arg-type]
    assert made == [3] and [numpy.random.default_rng(), numpy.random.default_rng(), numpy.random.default_rng(8)] == [
        [3, 1],
        [3, 2],
        8,
    ]


def test_generators_of_tensorflow_that_take_no_seed_get_one() -> None:
    class Generator:
        @classmethod
        def from_seed(cls, seed: int, alg: object = None) -> tuple[int, object]:
            return seed, alg

    seeds: list[int] = []
    tensorflow = SimpleNamespace(random=SimpleNamespace(Generator=Generator, set_seed=seeds.append))
    changes._seed_tensorflow(tensorflow, 3)  # type: ignore[arg-type]
    made = [tensorflow.random.Generator.from_non_deterministic_state(alg="philox") for _ in range(2)]
    assert seeds == [3] and made == [(3001, "philox"), (3002, "philox")]


def test_a_faster_clock() -> None:
    times = iter([100, 101, 103])
    now = changes._faster(lambda: next(times), 4)
    assert [now(), now()] == [104, 112]


@pytest.mark.parametrize(
    ("changed", "late"),
    [
        ({"initial_weights": {0: 7}}, True),
        ({"initial_weights": {0: 7}, "generator": {0: 7}}, False),
        ({"batch": {1: 7}, "weights": {1: 7}}, False),
    ],
)
def test_only_equal_generators_and_other_initial_weights_are_a_late_seed(
    changed: dict[str, Any], late: bool, tmp_path: Path
) -> None:
    a, b = (
        record.read(write(tmp_path / name, steps)) for name, steps in (("a", straight()), ("b", straight(**changed)))
    )
    difference = first_difference(a, b, False)
    assert difference and (LATE.suits(difference), SEED.suits(difference)) == (late, not late)


def test_where_no_generator_is_seen_nothing_says_when_the_seed_was_set(tmp_path: Path) -> None:
    runs = [straight(), straight(initial_weights={0: 7})]
    for hashes in (hashes for steps in runs for hashes in steps.values()):
        hashes.pop("generator", None)
    a, b = (record.read(write(tmp_path / str(number), steps)) for number, steps in enumerate(runs))
    difference = first_difference(a, b, False)
    assert difference and (LATE.suits(difference), SEED.suits(difference)) == (False, True)


@pytest.mark.parametrize("gradients", [True, False], ids=["seen", "unseen"])
def test_what_draws_within_a_step_that_is_not_seen_may_lack_a_seed(gradients: bool, tmp_path: Path) -> None:
    """A round of boosting draws samples and features, and shows its data and its trees alone."""
    kept = []
    for number in (1, 2):
        steps = straight(2, weights={1: number})
        for hashes in steps.values():
            hashes.pop("gradients" if not gradients else "", None)
        kept.append(record.read(write(tmp_path / str(number), steps)))
    first, second = kept
    difference = first_difference(first, second, False)
    assert difference and difference.channel == "weights"
    assert (SEED.suits(difference), ORIGIN.suits(difference)) == (not gradients, not gradients)


def test_a_cause_of_the_first_difference_beside_another_of_a_later_one(tmp_path: Path) -> None:
    """A set orders the batches of step 1, and a race decides the gradients of step 2."""
    made: list[object] = []

    def run(change: Change, against: Trial | None = None) -> Trial:
        made.append(None)
        order = held(change)
        hashes = straight(3, batch={1: order}, weights={1: order}, gradients={2: len(made)})
        path = write(tmp_path / str(len(made)), hashes)
        return Trial(change, Command(["x"]), path, record=record.read(path))

    plain = [run(BASELINE), run(REPEAT)]
    a, b = (trial.record for trial in plain)
    difference = first_difference(a, b, False) if a and b else None
    assert difference
    shown = SET.test(difference, plain, run)
    assert shown and not shown.alone
    assert shown.text.startswith(
        "the order of a set, or hash(), decides: 3 runs with PYTHONHASHSEED=0 are the same until step 2"
    )
    assert shown.text.endswith("; what differs from step 2 on has another cause, too")
