"""Cells that `benchmark` measures.

One for each combination of its lists; and how long a sample of each must train.
"""

import math
from itertools import product

from repro.trainers.benchmark.results import Cell
from repro.trainers.loop import layout
from repro.trainers.loop.config import TRAIN_SAMPLES, Config

# The loops that the trainers are compared with, which stand where a cell's numerics would; and the steps after which
# each of their two epochs is cut short.
BASELINES = {"tutorial": 150, "tuned": 900}
REPEAT_BITS = ("deterministic", "portable")  # numerics in which all samples must end with one fingerprint
GPU_EPOCHS = 10  # a GPU is timed over ten times the images, because it takes about a tenth of the time


def cells(config: Config, devices: list[str]) -> list[Cell]:
    """All cells of a benchmark; those to be compared with one another are side by side."""
    wanted, result = config.benchmark, []
    axes = product(wanted.train_samples, wanted.threads, wanted.batch_sizes, devices, wanted.frameworks)
    for samples, threads, batch_size, device, framework in axes:
        for numerics in wanted.numerics:
            images = int(wanted.epochs * samples) * (GPU_EPOCHS if device == "gpu" else 1)
            steps = steps_for(config.params.model, batch_size, samples, images)
            result.append(Cell(framework, numerics, device, batch_size, threads, samples, steps))
        for baseline in baselines(config, device, threads, samples):
            steps = 2 * min(BASELINES[baseline], math.ceil(samples / batch_size))
            result.append(Cell(framework, baseline, device, batch_size, threads, samples, steps))
    return result


def baselines(config: Config, device: str, threads: int, samples: int) -> list[str]:
    """The baselines to measure beside these: they know one network and one data set, and the tutorial's no threads."""
    same = (config.params.model, config.params.optimizer, config.data.dataset) == ("lenet", "sgd", "mnist")
    first = (device, threads, samples) == ("cpu", config.benchmark.threads[0], TRAIN_SAMPLES)
    return [name for name in BASELINES if same and first and getattr(config.benchmark, name)]


def steps_for(model: str, batch_size: int, samples: int, images: int) -> int:
    """The steps after which `images` images were trained on in calls for which nothing had to be compiled any more.

    As times.steady() sees it: a call is counted where one of the same number of steps and images came before it.
    """
    longest, epoch = layout.steps_per_call(model, batch_size), math.ceil(samples / batch_size)
    seen, counted, step, place = set(), 0, 0, 0
    while counted < max(images, 1):
        stop = min(place + longest, epoch)
        shape = (stop - place, min(stop * batch_size, samples) - place * batch_size)
        counted += shape[1] if shape in seen else 0
        seen.add(shape)
        step, place = step + stop - place, stop % epoch
    return step


def in_round(ordered: list[Cell], number: int) -> list[Cell]:
    """The order of round 0, 1, 2...: forwards, backwards, forwards: ABBA, so that a drift hits all alike."""
    return ordered if number % 2 == 0 else ordered[::-1]
