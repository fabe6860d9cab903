"""A training run of the reference trainers, without any framework.

config, data, randomness, layout  what goes in: configuration, MNIST, random numbers, names and shapes of the weights
environment, float32, call        a framework's variables, constants of portable numerics, calls of run.sh
training, recorder                the loop over epochs; one step's results and gradients
ranks, launch                     several processes: sharing a batch, starting and watching them
checkpoint, trace, experiment, times, golden  what comes out, and the published fingerprints
"""
