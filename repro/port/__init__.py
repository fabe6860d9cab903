"""A port from one framework to another, checked: what agrees, and the first that does not.

side         one record: batch, weights, calls of modules, loss, gradients, the optimizer's states
layouts      how the elements of one array lie in another: transposed, reshaped, in parts
matching     which weights belong together
agreement    how far apart two arrays are, beside the rounding that was measured
functions    activations, of single numbers
call_pairs   calls of both sides that use the same weights
forward      forward passes layer by layer: the first place whose inputs agree and whose results do not
updates      what an optimizer made of gradients, read from its first step
quantities   batch, weights, forward pass, loss, gradients, states, one after another
port         the whole comparison
causes       why two sides do not agree: a list of named rules
"""
