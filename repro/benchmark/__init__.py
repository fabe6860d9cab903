"""How fast training is on this machine.

cells        combinations of framework, numerics, device and sizes, and how long a sample of each trains
samples      one sample: a fresh process that times itself
measurement  samples of all cells in interleaved rounds, while there is time
energy       joules and GPU memory, from the machine's counters
roofline     the least time that an epoch's matrix products can take
intervals    medians and bootstrap intervals of few samples
speed        conclusions from samples: rows, ratios, warnings
results      benchmark.json
against      comparison with an older benchmark.json
"""
