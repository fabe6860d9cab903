"""Facts of the machine and its environment.

facts       CPU, versions, container, commit
variables   environment variables that can change bits
gpu         NVIDIA GPUs, by their driver
"""
