"""Runs portable operations of one framework for test_portable.py, in that framework's environment.

    python portable_worker.py FRAMEWORK

Reads requests from stdin and answers on stdout, each a length in 8 bytes and an npz archive. A request names an
operation and holds its arguments in the layout of reference.py; the answer is what reference.py gives for them.
"""

import io
import os
import sys

import numpy as np

from repro.run.config import Params

# Of the network that is not MNIST's.
RATE, MOMENTUM, STEPS = 0.3, 0.9, 5


class PyTorch:
    def __init__(self) -> None:
        import torch

        from repro.portable.pytorch import operations as ops

        torch.set_num_threads(2)
        self.torch, self.ops = torch, ops

    def tensor(self, array, axes=None):
        array = np.ascontiguousarray(array if axes is None else array.transpose(axes))
        return self.torch.from_numpy(array.copy()).requires_grad_(array.dtype.kind == "f")

    def conv(self, x, kernel, bias, gradient):
        x, k, b = self.tensor(x, (0, 3, 1, 2)), self.tensor(kernel, (3, 2, 0, 1)), self.tensor(bias)
        y = self.ops.conv(x, k, b)
        y.backward(self.tensor(gradient, (0, 3, 1, 2)).detach())
        return (
            y.detach().permute(0, 2, 3, 1).numpy(),
            x.grad.permute(0, 2, 3, 1).numpy(),
            k.grad.permute(2, 3, 1, 0).numpy(),
            b.grad.numpy(),
        )

    def dense(self, x, kernel, bias, gradient):
        x, k, b = self.tensor(x), self.tensor(kernel, (1, 0)), self.tensor(bias)
        y = self.ops.dense(x, k, b)
        y.backward(self.tensor(gradient).detach())
        return y.detach().numpy(), x.grad.numpy(), k.grad.T.numpy(), b.grad.numpy()

    def max_pool(self, x, gradient):
        x = self.tensor(x, (0, 3, 1, 2))
        y = self.ops.max_pool(x)
        y.backward(self.tensor(gradient, (0, 3, 1, 2)).detach())
        return y.detach().permute(0, 2, 3, 1).numpy(), x.grad.permute(0, 2, 3, 1).numpy()

    def loss(self, logits, labels):
        z = self.tensor(logits)
        losses = self.ops.softmax_cross_entropy(z, self.torch.from_numpy(labels).long())
        losses.sum().backward()
        return losses.detach().numpy(), z.grad.numpy()

    def update(self, optimizer, rate, momentum, weight, gradient, count, *slots):
        w = self.torch.nn.Parameter(self.tensor(weight).detach())
        made = self.ops.optimizer(Params(optimizer=optimizer, learning_rate=rate, momentum=momentum), {"w": w})
        names = ("momentum/w",) if optimizer == "sgd" else ("first_moment/w", "second_moment/w")
        for name, slot in zip(names, slots, strict=True):
            made.slots[name].copy_(self.tensor(slot).detach())
        if optimizer == "adam":
            made.slots["adam.count"].fill_(float(count))
        w.grad = self.tensor(gradient).detach()
        made.step()
        return w.detach().numpy(), *(made.slots[name].numpy() for name in names)

    def network(self, images, labels, *weights):
        torch, ops, f = self.torch, self.ops, self.torch.nn.functional
        axes = {4: (3, 2, 0, 1), 2: (1, 0), 1: (0,)}
        w = [torch.nn.Parameter(self.tensor(array, axes[array.ndim]).detach()) for array in weights]
        made = ops.optimizer(Params(learning_rate=RATE, momentum=MOMENTUM), {str(i): one for i, one in enumerate(w)})
        for _ in range(STEPS):
            x = self.tensor(images, (0, 3, 1, 2)).detach()
            x = f.relu(ops.max_pool(ops.conv(x, w[0], w[1])))
            x = f.relu(ops.conv(x, w[2], w[3])).permute(0, 2, 3, 1).flatten(1)
            logits = ops.dense(f.relu(ops.dense(x, w[4], w[5])), w[6], w[7])
            made.zero_grad()
            ops.mean_loss(logits, torch.from_numpy(labels).long()).backward()
            made.step()
        back = {4: (2, 3, 1, 0), 2: (1, 0), 1: (0,)}
        return [one.detach().permute(back[one.dim()]).numpy() for one in w]


class TensorFlow:
    def __init__(self) -> None:
        import tensorflow

        from repro.portable.tensorflow import operations as ops

        self.tf, self.ops = tensorflow, ops

    def gradients(self, function, arguments, gradient):
        arguments = [self.tf.constant(argument) for argument in arguments]
        with self.tf.GradientTape() as tape:
            tape.watch(arguments)
            y = function(*arguments)
        found = tape.gradient(y, arguments, self.tf.constant(gradient))
        return y.numpy(), *(array.numpy() for array in found)

    def conv(self, x, kernel, bias, gradient):
        return self.gradients(self.ops.conv, (x, kernel, bias), gradient)

    def dense(self, x, kernel, bias, gradient):
        return self.gradients(self.ops.dense, (x, kernel, bias), gradient)

    def max_pool(self, x, gradient):
        return self.gradients(self.ops.max_pool, (x,), gradient)

    def loss(self, logits, labels):
        ones = np.ones(len(logits))
        return self.gradients(lambda z: self.ops.softmax_cross_entropy(z, self.tf.constant(labels)), (logits,), ones)

    def update(self, optimizer, rate, momentum, weight, gradient, count, *slots):
        w = self.tf.Variable(weight)
        params = Params(optimizer=optimizer, learning_rate=rate, momentum=momentum)
        made = self.ops.optimizer(params, {"w": w})
        names = ("momentum/w",) if optimizer == "sgd" else ("first_moment/w", "second_moment/w")
        for name, slot in zip(names, slots, strict=True):
            made.slots[name].assign(slot)
        if optimizer == "adam":
            made.slots["adam.count"].assign(count)
        made.update({"w": self.tf.constant(gradient)})
        return w.numpy(), *(made.slots[name].numpy() for name in names)

    def network(self, images, labels, *weights):
        tf, ops = self.tf, self.ops
        w = [tf.Variable(array) for array in weights]
        made = ops.optimizer(Params(learning_rate=RATE, momentum=MOMENTUM), {str(i): one for i, one in enumerate(w)})
        for _ in range(STEPS):
            with tf.GradientTape() as tape:
                x = tf.nn.relu(ops.max_pool(ops.conv(tf.constant(images), w[0], w[1])))
                x = tf.nn.relu(ops.conv(x, w[2], w[3]))
                x = tf.reshape(x, (len(images), -1))
                logits = ops.dense(tf.nn.relu(ops.dense(x, w[4], w[5])), w[6], w[7])
                loss = ops.mean_loss(logits, tf.constant(labels))
            made.update({str(i): gradient for i, gradient in enumerate(tape.gradient(loss, w))})
        return [one.numpy() for one in w]


class Jax:
    def __init__(self) -> None:
        os.environ.update(JAX_PLATFORMS="cpu", PJRT_NPROC="2")
        import jax

        jax.config.update("jax_enable_x64", True)
        from repro.portable.jax import operations as ops

        self.jax, self.ops = jax, ops
        self.compiled: dict = {}  # or each request would compile what the one before it did

    def gradients(self, function, arguments, gradient, *others):
        def both(arguments, gradient, others):
            y, pull = self.jax.vjp(lambda *arguments: function(*arguments, *others), *arguments)
            return y, *pull(gradient)

        compiled = self.compiled.setdefault(function, self.jax.jit(both))
        return [np.asarray(array) for array in compiled(arguments, gradient, others)]

    def conv(self, x, kernel, bias, gradient):
        arguments = (x.transpose(3, 1, 2, 0), kernel, bias)
        y, dx, dk, db = self.gradients(self.ops.conv, arguments, gradient.transpose(3, 1, 2, 0))
        return y.transpose(3, 1, 2, 0), dx.transpose(3, 1, 2, 0), dk, db

    def dense(self, x, kernel, bias, gradient):
        return self.gradients(self.ops.dense, (x, kernel, bias), gradient)

    def max_pool(self, x, gradient):
        y, dx = self.gradients(self.ops.max_pool, (x.transpose(3, 1, 2, 0),), gradient.transpose(3, 1, 2, 0))
        return y.transpose(3, 1, 2, 0), dx.transpose(3, 1, 2, 0)

    def loss(self, logits, labels):
        return self.gradients(self.ops.softmax_cross_entropy, (logits,), np.ones(len(logits)), labels)

    def update(self, optimizer, rate, momentum, weight, gradient, count, *slots):
        import optax

        made = self.ops.optimizer(Params(optimizer=optimizer, learning_rate=rate, momentum=momentum))
        state = made.init({"w": weight})
        keys = ("trace",) if optimizer == "sgd" else ("mu", "nu")
        for key, slot in zip(keys, slots, strict=True):
            state = optax.tree_utils.tree_set(state, **{key: {"w": slot}})
        if optimizer == "adam":
            state = optax.tree_utils.tree_set(state, count=np.int32(count))
        update = self.compiled.setdefault((optimizer, rate, momentum), self.jax.jit(made.update))
        weights, state = update({"w": weight}, state, {"w": gradient})
        return np.asarray(weights["w"]), *(np.asarray(optax.tree_utils.tree_get(state, key)["w"]) for key in keys)

    def network(self, images, labels, *weights):
        relu, ops = self.jax.nn.relu, self.ops

        def loss(w):
            x = relu(ops.max_pool(ops.conv(images.transpose(3, 1, 2, 0), w["0"], w["1"])))
            x = relu(ops.conv(x, w["2"], w["3"])).transpose(3, 1, 2, 0).reshape(len(images), -1)
            return ops.mean_loss(ops.dense(relu(ops.dense(x, w["4"], w["5"])), w["6"], w["7"]), labels)

        made = ops.optimizer(Params(learning_rate=RATE, momentum=MOMENTUM))
        w = {str(i): self.jax.numpy.asarray(array) for i, array in enumerate(weights)}
        slots, step = made.init(w), self.jax.jit(lambda w, slots: made.update(w, slots, self.jax.grad(loss)(w)))
        for _ in range(STEPS):
            w, slots = step(w, slots)
        return [np.asarray(w[str(i)]) for i in range(len(weights))]


def main(framework: str) -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not get among the answers
    worker = {"pytorch": PyTorch, "tensorflow": TensorFlow, "jax": Jax}[framework]()
    while size := sys.stdin.buffer.read(8):
        request = np.load(io.BytesIO(sys.stdin.buffer.read(int.from_bytes(size, "little"))))
        operation, *scalars = str(request["operation"]).split()
        arguments = [request[f"arr_{i}"] for i in range(len(request.files) - 1)]
        if scalars:
            arguments = [scalars[0], float(scalars[1]), float(scalars[2]), *arguments]
        buffer = io.BytesIO()
        np.savez(buffer, *getattr(worker, operation)(*arguments))
        answers.write(len(buffer.getvalue()).to_bytes(8, "little") + buffer.getvalue())
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
