"""Records of two sides of a port, written from NumPy: a small network, and what an optimizer makes of its gradients."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from repro.port.port import Port, compare
from repro.record import lines, record

TORCH, KERAS, JAX = {"torch": "2.15"}, {"keras": "3.15"}, {"jax": "0.10"}
Arrays = dict[str, np.ndarray]
Function = Callable[[np.ndarray], np.ndarray]


@dataclass
class Written:
    """What a record of one side holds; arrays in float64, of which float32 is recorded and float64 is the twin."""

    frameworks: dict[str, str]
    weights: Arrays
    batch: Arrays
    calls: list[dict[str, Any]] = field(default_factory=list)
    loss: float | None = None
    gradients: Arrays = field(default_factory=dict)
    states: Arrays = field(default_factory=dict)
    after: Arrays = field(default_factory=dict)
    buffers: Arrays = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def call(self, module: str, kind: str, x: np.ndarray, y: np.ndarray, **content: Any) -> np.ndarray:
        """Adds a call of a module with its own weights by their ends, and gives what it returned."""
        own = {
            name[len(module) + 1 :]: array for name, array in self.weights.items() if name.rpartition(".")[0] == module
        }
        given = {"inputs": {"0": x}, "outputs": {"": y}, "exact": {"": y}, "weights": own} | content
        self.calls.append({"module": module, "type": kind, "settings": {}, **given})
        return y

    def at(self, folder: Path) -> record.Record:
        """The record, written and read."""
        (folder / lines.STEPS).mkdir(parents=True)
        (folder / record.KEPT).mkdir()
        keep = Keeper(folder / record.KEPT)
        written: list[dict[str, Any]] = [{"kind": "process", "pid": 1, "frameworks": self.frameworks}]
        written.append({"kind": "step", "step": 0, "hashes": {"initial weights": keep.all(self.weights)}})
        for number, call in enumerate(self.calls, 1):
            arrays = {name: keep.all(call.get(name, {})) for name in ("inputs", "outputs", "weights", "buffers")}
            exact = keep.all(call.get("exact", {}), exact=True)
            plain = {name: call[name] for name in ("module", "type", "settings")}
            written.append({"kind": "call", "step": 1, "number": number, **plain, **arrays, "exact": exact})
        if self.loss is not None:
            value = {"": np.asarray(self.loss)}
            number = len(self.calls) + 1
            line = {"kind": "call", "step": 1, "number": number, "module": "loss", "type": "loss"}
            written.append({**line, "outputs": keep.all(value), "exact": keep.all(value, exact=True)})
        exact = keep.all(self.gradients, exact=True)
        written.append({"kind": "backward", "step": 1, "gradients": keep.all(self.gradients), "exact": exact})
        hashes = {"batch": self.batch, "optimizer": self.states, "weights": self.after, "buffers": self.buffers}
        written.append({"kind": "step", "step": 1, "hashes": {name: keep.all(of) for name, of in hashes.items() if of}})
        (folder / lines.STEPS / "1.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in written))
        content = {
            "schema": 1,
            "command": ["python", "train.py"],
            "folder": "/home/me",
            "started": "2026-01-01T00:00:00+00:00",
            "seconds": 1.0,
            "exit_code": 0,
            "every": 1,
            "facts": self.facts,
            "processes": [{"name": "1", "rank": None, "steps": 1, "frameworks": self.frameworks}],
            "outputs": {},
            "notes": [],
            "fingerprint": record.fingerprint([one for one in lines.processes(folder) if one.steps], {}),
            "unseen": [],
        }
        (folder / record.FILE).write_text(json.dumps(content))
        return record.read(folder)


@dataclass(frozen=True)
class Keeper:
    """Stores arrays as the observer does: in the file that is their hash's name."""

    folder: Path

    def all(self, arrays: Arrays, exact: bool = False) -> dict[str, str]:
        return {name: self.one(array, exact) for name, array in arrays.items()}

    def one(self, array: np.ndarray, exact: bool) -> str:
        kept = np.asarray(array, np.float64 if exact else np.float32) if array.dtype.kind == "f" else array
        head = f"{kept.dtype.name} {','.join(map(str, kept.shape))}\n".encode()
        content = head + np.ascontiguousarray(kept).tobytes()
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / digest).write_bytes(content)
        return digest


def compared(folder: Path, a: Written, b: Written, pairs: str | None = None) -> Port:
    file = None
    if pairs is not None:
        file = folder / "pairs.txt"
        file.write_text(pairs)
    return compare(a.at(folder / "a"), b.at(folder / "b"), file)


def drawn(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Normal numbers that float32 has."""
    numbers = np.random.default_rng([seed, *shape]).normal(size=shape) * scale
    return numbers.astype(np.float32).astype(np.float64)


def same(x: np.ndarray) -> np.ndarray:
    return x


def network(frameworks: dict[str, str], x: np.ndarray, middle: Function = same, **weights: np.ndarray) -> Written:
    """Two dense layers of A's names and layout, or of another library's, and what lies between: it is no module."""
    torch = frameworks is TORCH
    kernels = [drawn(16, 8, seed=1), drawn(4, middle(np.zeros((len(x), 16))).shape[-1], seed=2)]
    names = ("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias")
    if not torch:
        names = ("Dense_0.kernel", "Dense_0.bias", "Dense_1.kernel", "Dense_1.bias")
    arrays = [kernels[0], drawn(16, seed=3), kernels[1], np.zeros(4)]
    held = [array if torch or array.ndim == 1 else array.T for array in arrays]
    side = Written(frameworks, dict(zip(names, held, strict=True)) | weights, {"0": x})
    kind = "Linear" if torch else "Dense"
    h = side.call(names[0].rpartition(".")[0], kind, x, x @ kernels[0].T + arrays[1])
    z = middle(h)
    y = side.call(names[2].rpartition(".")[0], kind, z, z @ kernels[1].T + arrays[3])
    side.calls.insert(
        0, {"module": "", "type": "Net", "settings": {}, "inputs": {"0": x}, "outputs": {"": y}, "exact": {"": y}}
    )
    return side


def trained(
    side: Written, gradients: list[np.ndarray], step: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, Arrays]]
) -> Written:
    """Adds the first step of an optimizer: `step` of a weight and its gradient gives the weight after it, and states.

    The gradients are given in PyTorch's layout, in the order of the weights.
    """
    torch = side.frameworks is TORCH
    for (name, weight), gradient in zip(side.weights.items(), gradients, strict=True):
        own = gradient if torch or gradient.ndim == 1 else gradient.T
        side.gradients[name] = own
        after, states = step(weight, own)
        side.after[name] = after
        side.states |= {f"{name}.{state}": array for state, array in states.items()}
    return side
