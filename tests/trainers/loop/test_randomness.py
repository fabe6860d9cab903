"""repro.trainers.loop.randomness: the numbers of a run are what they always were, and independent of one another."""

import hashlib
import math

import numpy as np
import pytest

from repro.fingerprint import fingerprint
from repro.trainers.loop import layout, randomness
from repro.trainers.loop.randomness import Purpose

SAMPLES = 60_000
SEEDS = (0, 20_261_121)
MASK = 2**64 - 1

each_model = pytest.mark.parametrize("model", layout.MODELS)


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
        0x16554D9ECA36314C,
        0xDB20FE9D672D0FDC,
        0xD7E772CEE186176B,
        0x7E68B68AEC7BA23B,
    )
    assert philox4x64((ones, ones, ones, ones), (ones, ones)) == (
        0x87B092C3013FE90B,
        0x438C3C67BE8D0224,
        0x9CC7D7C69CD777B6,
        0xA09CAEBF594F0BA0,
    )


@pytest.mark.parametrize("seed", [*SEEDS, MASK])
@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("epoch", [0, 1, 2**32])
def test_words_are_those_of_philox(seed: int, purpose: Purpose, epoch: int):
    """The key is (seed, purpose); the counter is (block, 0, epoch, 0), and blocks count from 1."""
    expected = [word for block in (1, 2, 3) for word in philox4x64((block, 0, epoch, 0), (seed, purpose))]
    assert randomness.words(seed, purpose, epoch, 10).tolist() == expected[:10]


@pytest.mark.parametrize("start", [1, 3, 4, 5, 291])
def test_a_stream_can_start_in_its_middle(start: int):
    whole = randomness.words(7, Purpose.DROPOUT, 2, 300)
    assert np.array_equal(randomness.words(7, Purpose.DROPOUT, 2, 9, start), whole[start : start + 9])


GOLDEN_WEIGHTS = {
    ("lenet", 0): "sha256:bb709201749f177548c62ffd596e40b96e72eee1974f2ce034df668612519daf",
    ("lenet", 20_261_121): "sha256:cfcc9a9a243d7a4d5980d3a9e238bcaa4463c38d756686ae439a1ce1907cce51",
    ("convnet", 0): "sha256:8b27d18d64b4824d52849cd2dbe4bd3e252d4e9878f097b712abf624d7ad6bd9",
}
GOLDEN_ORDER = {
    (0, 1): "206cc1234cfdb986ca82d560983637deb31d883d953789ffc7e1d3942a2bb3b6",
    (0, 2): "3790b7ace9dac0afbc82e3712ccbf2a1fcc3cf442b0ffac394be958741514270",
    (20_261_121, 1): "e12e7cf8a26b3e57f878f1f3c2c45b118984b14cd3d4a5d0626043b1109e61db",
}
GOLDEN_BITS = {
    ("lenet", 0, 1, 0): "cb69d8d4bcef230155d8cc6e5d94c5c58768e3df8c428b82f786cd4e68af9c07",
    ("lenet", 0, 2, 0): "0551245580b6dfef097fc7f14f89791ed6d59d9fbabaaa2087818272db297e1b",
    ("lenet", 20_261_121, 1, 0): "97344a43af1bd5014123ee9f9dc17446545cccbb20a7966fb4f4be5957166054",
    ("convnet", 0, 1, 59_000): "12c8527f83d46890bbe0ff558bdb8d01cd2196fcede314d354528a9d5c60b162",
}


@pytest.mark.parametrize(("model", "seed"), GOLDEN_WEIGHTS)
def test_initial_weights_are_what_they_always_were(model: str, seed: int):
    assert fingerprint(randomness.initial_weights(seed, model)) == GOLDEN_WEIGHTS[model, seed]


@pytest.mark.parametrize(("seed", "epoch"), GOLDEN_ORDER)
def test_the_order_is_what_it_always_was(seed: int, epoch: int):
    assert sha256(randomness.order(seed, epoch, SAMPLES)) == GOLDEN_ORDER[seed, epoch]


@pytest.mark.parametrize(("model", "seed", "epoch", "start"), GOLDEN_BITS)
def test_dropout_bits_are_what_they_always_were(model: str, seed: int, epoch: int, start: int):
    bits = randomness.dropout_bits(seed, epoch, model, start, SAMPLES)
    assert sha256(bits) == GOLDEN_BITS[model, seed, epoch, start]


@pytest.mark.parametrize("samples", [1, 70, SAMPLES])
def test_an_order_visits_every_sample_once(samples: int):
    order = randomness.order(0, 1, samples)
    assert order.dtype == np.int32
    assert np.array_equal(np.sort(order), np.arange(samples))


def test_an_order_sorts_the_words():
    words = randomness.words(0, Purpose.ORDER, 3, 70).tolist()
    assert randomness.order(0, 3, 70).tolist() == sorted(range(70), key=words.__getitem__)


def spent(model: str, samples: int) -> list[list[list[int]]]:
    """The random bits of each sample's every unit, cut from the stream one after the other."""
    counts = [place.bits for place in layout.MODELS[model].dropout for _ in range(place.units)]
    words = randomness.words(0, Purpose.DROPOUT, 1, -(-samples * sum(counts) // 64)).tolist()
    stream = (word >> bit & 1 for word in words for bit in range(64))  # the lowest bit of the first word comes first
    return [[[next(stream) for _ in range(count)] for count in counts] for _ in range(samples)]


@each_model
def test_dropout_spends_the_words_bits_in_order(model: str):
    """A unit is dropped where all of its bits are 0."""
    bits = randomness.dropout_bits(0, 1, model, 0, 3)
    assert (bits.dtype, bits.shape) == (np.dtype(np.uint8), (3, layout.MODELS[model].units))
    assert bits.tolist() == [[int(any(unit)) for unit in sample] for sample in spent(model, 3)]


@each_model
@pytest.mark.parametrize("size", [1, 7, 32, 70, 1000])
def test_the_slices_of_an_epoch_are_its_dropout_bits(model: str, size: int):
    """Wherever a slice starts within a word or a block of words."""
    whole = randomness.dropout_bits(0, 1, model, 0, 230)
    slices = [randomness.dropout_bits(0, 1, model, i, min(i + size, 230)) for i in range(0, 230, size)]
    assert np.array_equal(np.concatenate(slices), whole)


@pytest.mark.parametrize(("model", "kept"), [("lenet", (1 / 2, 1 / 2)), ("convnet", (3 / 4, 1 / 2))])
def test_dropout_keeps_its_share(model: str, kept: tuple[float, ...]):
    bits, start = randomness.dropout_bits(0, 1, model, 0, 3000), 0
    for place, share in zip(layout.MODELS[model].dropout, kept, strict=True):
        part = bits[:, start : start + place.units]
        deviation = math.sqrt(share * (1 - share) / part.size)
        assert abs(float(part.mean(dtype=np.float64)) - share) < 5 * deviation
        start += place.units


def test_seeds_purposes_and_epochs_have_streams_of_their_own():
    """No word occurs twice, whether in one stream or in two."""
    streams = [(seed, purpose, epoch) for seed in (0, 1, 2) for purpose in Purpose for epoch in (0, 1, 2)]
    words = np.concatenate([randomness.words(*stream, 1000) for stream in streams])
    assert len(np.unique(words)) == len(words)


FAN_IN = {
    "lenet": {"conv1": 25, "conv2": 250, "dense1": 320, "dense2": 50},
    "convnet": {"conv1": 9, "conv2": 288, "dense1": 9216, "dense2": 128},
}


@each_model
@pytest.mark.parametrize("seed", SEEDS)
def test_weights_fill_their_range(model: str, seed: int):
    """Uniform in +-1/sqrt(fan-in), kernels and biases alike."""
    weights = randomness.initial_weights(seed, model)
    assert {name: array.shape for name, array in weights.items()} == layout.MODELS[model].weights
    assert sum(array.size for array in weights.values()) == {"lenet": 21_840, "convnet": 1_199_882}[model]
    for name, array in weights.items():
        bound = 1 / math.sqrt(FAN_IN[model][name.split(".")[0]])
        assert array.dtype == np.float32
        assert np.abs(array).max() <= np.float32(bound), name
        if array.size >= 250:  # large enough to come near its bounds
            assert array.max() > 0.97 * bound, name
            assert array.min() < -0.97 * bound, name
            assert abs(float(array.mean())) < 5 * bound / math.sqrt(3 * array.size), name


def test_a_weight_is_the_top_24_bits_of_its_word():
    word = int(randomness.words(0, Purpose.WEIGHTS, 0, 1)[0])
    expected = np.float32(((word >> 40) / 2**23 - 1) * (1 / math.sqrt(25)))
    assert randomness.initial_weights(0, "lenet")["conv1.kernel"].ravel()[0] == expected


@each_model
@pytest.mark.parametrize("optimizer", layout.SLOTS)
def test_the_optimizer_starts_from_zero(model: str, optimizer: str):
    state, weights = randomness.initial_state(0, model, optimizer), layout.MODELS[model].weights
    names = [layout.slot(slot, name) for slot in layout.SLOTS[optimizer] for name in weights]
    count = ["adam.count"] if optimizer == "adam" else []
    assert sorted(state) == sorted([*weights, *names, *count])
    assert fingerprint(layout.weights_of(state)) == fingerprint(randomness.initial_weights(0, model))
    for name in [*names, *count]:
        assert state[name].dtype == np.float32
        assert not state[name].any()
        assert state[name].shape == (() if name in count else weights[name.split("/")[1]])
