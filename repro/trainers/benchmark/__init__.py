"""Benchmarks of training on this machine.

cells.py        combinations of framework, numerics, device and sizes, and how long a sample of each trains
samples.py      one sample: a fresh process that times itself
measurement.py  samples of all cells in interleaved rounds, while there is time
energy.py       joules and GPU memory, from the machine's counters
roofline.py     the least time that an epoch's matrix products can take
intervals.py    medians and bootstrap intervals of few samples
speed.py        conclusions from samples: rows, ratios, warnings
results.py      benchmark.json
against.py      comparison with an older benchmark.json
"""
