"""Each cause: a difference that has it, and one that only looks like it and must not get it."""

from dataclasses import replace
from pathlib import Path

import pytest

from repro.compare import reasons
from repro.compare.reasons.case import GUESS
from support.commands import resumed, sha, straight
from support.two_records import (
    COUNTED,
    EARLIER,
    LONGER,
    SCALED,
    WEIGHTS,
    Two,
    accumulating,
    averaged,
    calling_back,
    changing,
    counted,
    counting,
    frozen,
    goes_on,
    holding,
    in_the_loss,
    later,
    less,
    masked,
    numbers,
    of_ranks,
    old,
    passes,
    plain,
    renamed,
    rounded,
    shared,
    two_parameters,
    watched,
)

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
