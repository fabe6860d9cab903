"""Two layers of GRU, in Keras, with the weights of a PyTorch checkpoint: after keras-team/keras issue 15915.

python keras15915_keras.py DATA.npz [--fault keras15915]
"""

import argparse

import keras
import numpy as np
from keras import layers

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--fault", choices=("keras15915",))
options = parser.parse_args()
data = np.load(options.data)


def gates(array: np.ndarray) -> np.ndarray:
    """PyTorch's gates are reset, update, new; Keras' are update, reset, new. The report leaves them as they are."""
    reset, update, new = np.split(array, 3)
    return array if options.fault == "keras15915" else np.concatenate([update, reset, new])


network = keras.Sequential(
    [
        keras.Input((10, 6)),
        layers.GRU(12, return_sequences=True, use_cudnn=False, name="gru0"),
        layers.GRU(12, use_cudnn=False, name="gru1"),
        layers.Dense(3, name="dense"),
    ]
)
for number in (0, 1):
    kernel, states, bias, second = (
        gates(data[f"gru.{name}_l{number}"]) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    network.get_layer(f"gru{number}").set_weights([kernel.T, states.T, np.stack([bias, second])])
network.get_layer("dense").set_weights([data["dense.weight"].T, data["dense.bias"]])
network.compile(
    keras.optimizers.SGD(0.1),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    jit_compile=False,  # XLA shows no gradients
)
history = network.fit(data["series"], data["labels"], batch_size=8, shuffle=False, verbose=0)
print("loss", history.history["loss"][0])
