"""Functions of one number over the whole range of float32 in one framework, and shares of softmax.

    python mode_tails.py pytorch|tensorflow|jax ARGUMENTS.npy

Prints JSON: `values` and `slopes`, by function the results of the arguments, and the gradients, as float32's bits; and
`shares`, the softmax of ROW.
"""

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

ROW = [0.0, -20.0, -30.0, -60.0, -80.0, -85.0]
Functions = dict[str, Callable[..., Any]]
Results = tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]


def pytorch(x: np.ndarray) -> Results:
    import torch
    from torch.nn import functional as f

    import repro.portable.pytorch as portable

    functions: Functions = {
        "sigmoid": torch.sigmoid,
        "silu": f.silu,
        "gelu": f.gelu,
        "gelu_tanh": lambda t: f.gelu(t, approximate="tanh"),
        "tanh": torch.tanh,
        "mish": f.mish,
    }
    values, slopes = {}, {}
    with portable.enable():
        for name, function in functions.items():
            given = torch.from_numpy(x).requires_grad_()
            values[name] = function(given)
            (slopes[name],) = torch.autograd.grad(values[name].sum(), given)
        shares = torch.softmax(torch.tensor([ROW]), 1)
    result = ({name: y.detach().numpy() for name, y in each.items()} for each in (values, slopes))
    return *result, shares.numpy()


def tensorflow(x: np.ndarray) -> Results:
    import tensorflow as tf

    import repro.portable.tensorflow as portable

    functions: Functions = {"sigmoid": tf.sigmoid, "silu": tf.nn.silu, "tanh": tf.tanh}
    with portable.enable():
        values = {name: function(tf.constant(x)).numpy() for name, function in functions.items()}
        shares = tf.nn.softmax(tf.constant([ROW])).numpy()
    return values, {}, shares


def jax(x: np.ndarray) -> Results:
    import repro.portable.jax as portable

    portable.enable()
    import jax
    from jax import numpy as jnp

    functions: Functions = {"sigmoid": jax.nn.sigmoid, "silu": jax.nn.silu, "tanh": jnp.tanh, "cbrt": jnp.cbrt}
    values = {name: np.asarray(jax.jit(function)(x)) for name, function in functions.items()}
    return values, {}, np.asarray(jax.nn.softmax(np.array([ROW], np.float32)))


if __name__ == "__main__":
    values, slopes, shares = {"pytorch": pytorch, "tensorflow": tensorflow, "jax": jax}[sys.argv[1]](
        np.load(sys.argv[2])
    )
    bits = [{name: y.view(np.int32).tolist() for name, y in each.items()} for each in (values, slopes)]
    print(json.dumps({"values": bits[0], "slopes": bits[1], "shares": shares.view(np.int32)[0].tolist()}))
