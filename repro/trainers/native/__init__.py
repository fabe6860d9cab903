"""Fast parts of the reference trainers, a folder for each framework, with the same file names.

layers       convolution, and max_pool where the framework's own is slow
convolution  as one matrix product, with its gradients (JAX, TensorFlow); portable numerics use it, too
optimizers   SGD, Adam, Adadelta, and their slots
ranks        processes, and in JAX threads, that share a batch
parts        a batch cut for threads and their caches (JAX, TensorFlow)
graph        a step as a CUDA graph (PyTorch)
"""
