"""A convolutional network with batch norm, in Flax NNX.

python nnx.py DATA.npz [--fault FAULT]
"""

import argparse

import jax
import numpy as np
import optax
from flax import nnx

parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("--fault", choices=("padding", "normalization"))
options = parser.parse_args()
data = np.load(options.data)


class Network(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv1 = nnx.Conv(3, 8, (3, 3), padding=1, use_bias=False, rngs=rngs)
        self.norm1 = nnx.BatchNorm(8, momentum=0.9, epsilon=1e-5, rngs=rngs)
        # With a stride of 2, SAME pads 0 rows above and 1 below; PyTorch's padding=1 is 1 and 1.
        padding = "SAME" if options.fault == "padding" else 1
        self.conv2 = nnx.Conv(8, 16, (3, 3), strides=2, padding=padding, use_bias=False, rngs=rngs)
        self.norm2 = nnx.BatchNorm(16, momentum=0.9, epsilon=1e-5, rngs=rngs)
        self.dense = nnx.Linear(6 * 6 * 16, 10, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        x = nnx.relu(self.norm1(self.conv1(images)))
        x = nnx.avg_pool(x, (3, 3), padding="SAME", count_include_pad=False)
        x = nnx.relu(self.norm2(self.conv2(x)))
        return self.dense(x.reshape(len(x), -1))


def load(network: Network) -> None:
    """Takes the weights of a PyTorch checkpoint."""
    network.conv1.kernel[...] = data["conv1.weight"].transpose(2, 3, 1, 0)
    network.conv2.kernel[...] = data["conv2.weight"].transpose(2, 3, 1, 0)
    for name, norm in (("norm1", network.norm1), ("norm2", network.norm2)):
        norm.scale[...], norm.bias[...] = data[f"{name}.weight"], data[f"{name}.bias"]
    # PyTorch flattens [channel, height, width], Flax [height, width, channel].
    kernel = data["dense.weight"].reshape(10, 16, 6, 6).transpose(2, 3, 1, 0)
    network.dense.kernel[...], network.dense.bias[...] = kernel.reshape(-1, 10), data["dense.bias"]


@nnx.jit
def train_step(network: Network, optimizer: nnx.Optimizer, images: jax.Array, labels: jax.Array) -> jax.Array:
    def mean_loss(network: Network) -> jax.Array:
        return optax.softmax_cross_entropy_with_integer_labels(network(images), labels).mean()

    loss, gradients = nnx.value_and_grad(mean_loss)(network)
    optimizer.update(network, gradients)
    return loss


images = data["images"] / 255
if options.fault != "normalization":
    images = (images - 0.45) / 0.25
images = images.astype(np.float32)
network = Network(nnx.Rngs(0))
load(network)
optimizer = nnx.Optimizer(network, optax.sgd(0.05, momentum=0.9), wrt=nnx.Param)
losses = [
    train_step(network, optimizer, batch, truth)
    for batch, truth in zip(np.split(images, 3), np.split(data["labels"], 3), strict=True)
]
print("loss", np.mean(losses))
