"""repro.randomness: the numbers of a run are what they always were, and independent of one another."""

import hashlib
import math

import numpy as np
import pytest

from repro import layout, randomness
from repro.fingerprint import fingerprint
from repro.randomness import Purpose

SAMPLES = 60_000
SEEDS = (0, 20_261_121)
MASK = 2**64 - 1


def philox4x64(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, ...]:
    """Four words of Philox4x64-10, from its definition: Salmon et al. 2011, section 3.3 and table 2."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        left, right = 0xD2E7470EE14C6C93 * c0, 0xCA5A826395121157 * c2
        c0, c1, c2, c3 = (right >> 64) ^ c1 ^ k0, right & MASK, (left >> 64) ^ c3 ^ k1, left & MASK
        k0, k1 = (k0 + 0x9E3779B97F4A7C15) & MASK, (k1 + 0xBB67AE8584CAA73B) & MASK
    return c0, c1, c2, c3


def sha256(array: np.ndarray) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def test_philox_gives_its_authors_known_answers():
    """From kat_vectors of the authors' library Random123."""
    ones = MASK
    assert philox4x64((0, 0, 0, 0), (0, 0)) == (
        0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B,
    )  # fmt: skip
    assert philox4x64((ones, ones, ones, ones), (ones, ones)) == (
        0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0,
    )  # fmt: skip


@pytest.mark.parametrize("seed", [*SEEDS, MASK])
@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("epoch", [0, 1, 2**32])
def test_words_are_those_of_philox(seed: int, purpose: Purpose, epoch: int):
    """The key is (seed, purpose); the counter is (block, 0, epoch, 0), and blocks count from 1."""
    expected = [word for block in (1, 2, 3) for word in philox4x64((block, 0, epoch, 0), (seed, purpose))]
    assert randomness.words(seed, purpose, epoch, 10).tolist() == expected[:10]


GOLDEN_WEIGHTS = {
    0: "sha256:bb709201749f177548c62ffd596e40b96e72eee1974f2ce034df668612519daf",
    20_261_121: "sha256:cfcc9a9a243d7a4d5980d3a9e238bcaa4463c38d756686ae439a1ce1907cce51",
}
GOLDEN_ORDER = {
    (0, 1): "206cc1234cfdb986ca82d560983637deb31d883d953789ffc7e1d3942a2bb3b6",
    (0, 2): "3790b7ace9dac0afbc82e3712ccbf2a1fcc3cf442b0ffac394be958741514270",
    (20_261_121, 1): "e12e7cf8a26b3e57f878f1f3c2c45b118984b14cd3d4a5d0626043b1109e61db",
}
GOLDEN_BITS = {
    (0, 1): "cb69d8d4bcef230155d8cc6e5d94c5c58768e3df8c428b82f786cd4e68af9c07",
    (0, 2): "0551245580b6dfef097fc7f14f89791ed6d59d9fbabaaa2087818272db297e1b",
    (20_261_121, 1): "97344a43af1bd5014123ee9f9dc17446545cccbb20a7966fb4f4be5957166054",
}


@pytest.mark.parametrize("seed", GOLDEN_WEIGHTS)
def test_initial_weights_are_what_they_always_were(seed: int):
    assert fingerprint(randomness.initial_weights(seed)) == GOLDEN_WEIGHTS[seed]


@pytest.mark.parametrize(("seed", "epoch"), GOLDEN_ORDER)
def test_the_order_is_what_it_always_was(seed: int, epoch: int):
    assert sha256(randomness.order(seed, epoch, SAMPLES)) == GOLDEN_ORDER[seed, epoch]


@pytest.mark.parametrize(("seed", "epoch"), GOLDEN_BITS)
def test_dropout_bits_are_what_they_always_were(seed: int, epoch: int):
    assert sha256(randomness.dropout_bits(seed, epoch, SAMPLES)) == GOLDEN_BITS[seed, epoch]


@pytest.mark.parametrize("samples", [1, 70, SAMPLES])
def test_an_order_visits_every_sample_once(samples: int):
    order = randomness.order(0, 1, samples)
    assert order.dtype == np.int32
    assert np.array_equal(np.sort(order), np.arange(samples))


def test_an_order_sorts_the_words():
    words = randomness.words(0, Purpose.ORDER, 3, 70).tolist()
    assert randomness.order(0, 3, 70).tolist() == sorted(range(70), key=words.__getitem__)


def test_dropout_spends_the_words_bits_in_order():
    """The lowest bit of the first word is the first unit of the first sample."""
    words = randomness.words(0, Purpose.DROPOUT, 1, 4).tolist()
    expected = [word >> bit & 1 for word in words for bit in range(64)][: 3 * layout.DROPOUT_BITS]
    bits = randomness.dropout_bits(0, 1, 3)
    assert (bits.dtype, bits.shape) == (np.dtype(np.uint8), (3, layout.DROPOUT_BITS))
    assert bits.ravel().tolist() == expected


def test_a_shorter_epoch_sees_the_same_dropout_bits():
    assert np.array_equal(randomness.dropout_bits(0, 1, 70), randomness.dropout_bits(0, 1, 1000)[:70])


def test_dropout_keeps_about_half():
    kept = int(randomness.dropout_bits(0, 1, SAMPLES).sum())
    count = SAMPLES * layout.DROPOUT_BITS
    assert abs(kept - count / 2) < 5 * math.sqrt(count) / 2  # five standard deviations


def test_seeds_purposes_and_epochs_have_streams_of_their_own():
    """No word occurs twice, whether in one stream or in two."""
    streams = [(seed, purpose, epoch) for seed in (0, 1, 2) for purpose in Purpose for epoch in (0, 1, 2)]
    words = np.concatenate([randomness.words(*stream, 1000) for stream in streams])
    assert len(np.unique(words)) == len(words)


@pytest.mark.parametrize("seed", SEEDS)
def test_weights_fill_their_range(seed: int):
    """Uniform in +-1/sqrt(fan-in), kernels and biases alike."""
    fan_in = {"conv1": 25, "conv2": 250, "dense1": 320, "dense2": 50}
    weights = randomness.initial_weights(seed)
    assert {name: array.shape for name, array in weights.items()} == layout.WEIGHTS
    assert sum(array.size for array in weights.values()) == 21_840
    for name, array in weights.items():
        bound = 1 / math.sqrt(fan_in[name.split(".")[0]])
        assert array.dtype == np.float32
        assert np.abs(array).max() <= np.float32(bound), name
        if array.size >= 250:  # large enough to come near its bounds
            assert array.max() > 0.97 * bound, name
            assert array.min() < -0.97 * bound, name
            assert abs(float(array.mean())) < 5 * bound / math.sqrt(3 * array.size), name


def test_a_weight_is_the_top_24_bits_of_its_word():
    word = int(randomness.words(0, Purpose.WEIGHTS, 0, 1)[0])
    expected = np.float32(((word >> 40) / 2**23 - 1) * (1 / math.sqrt(25)))
    assert randomness.initial_weights(0)["conv1.kernel"].ravel()[0] == expected


@pytest.mark.parametrize(("optimizer", "slots"), [("sgd", ["momentum"]), ("adam", ["first_moment", "second_moment"])])
def test_the_optimizer_starts_from_zero(optimizer: str, slots: list[str]):
    state = randomness.initial_state(0, optimizer)
    names = [layout.slot(slot, name) for slot in slots for name in layout.WEIGHTS]
    count = ["adam.count"] if optimizer == "adam" else []
    assert sorted(state) == sorted([*layout.WEIGHTS, *names, *count])
    assert fingerprint({name: state[name] for name in layout.WEIGHTS}) == GOLDEN_WEIGHTS[0]
    for name in [*names, *count]:
        assert state[name].dtype == np.float32
        assert not state[name].any()
        assert state[name].shape == (() if name in count else layout.WEIGHTS[name.split("/")[1]])
