"""One training run of the reference trainers, without any framework.

config, data, randomness, layout  what goes in: configuration, MNIST, random numbers, names and shapes of the weights
environment, gpu, float32         variables, devices, constants of portable numerics
training, recorder                the loop over epochs; one step's results and gradients
ranks, launch, sweep              several processes: sharing a batch, starting and watching them; several runs
checkpoint, trace, experiment, times, golden  what comes out, and the published fingerprints
"""
