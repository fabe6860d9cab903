"""Operations that choose, order and add, under portable numerics of any program.

Prints a SHA-256 of each case, and which cases differ by threads, kernels or layout, or are far from float64, as JSON.
"""

import hashlib
import json
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import repro.portable.pytorch as portable
from programs import meeting_cases, sampling_cases, sparse_cases, volume_cases  # noqa: F401
from programs.indexing_cases import CASES, Case
from repro.portable.kernels import pytorch as compiler
from repro.portable.modes.pytorch.dispatcher.dispatch import with_native_ops

CLOSE = {torch.float64: 1e-12, torch.float32: 4e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
"""Of the largest number of a result, beside float64."""


def strided(x: Tensor) -> Tensor:
    """The same numbers, each second one of memory."""
    return torch.stack([x, x], -1)[..., 0]


def channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


WAYS = [("cpu", 2, True, Tensor.clone), ("cpu", 1, True, strided), ("cpu", 1, False, channels_last)]
WAYS += [("cuda", 1, True, Tensor.clone)] if torch.cuda.is_available() else []


def results(case: Case, inputs: list[Tensor], layout: Callable[[Tensor], Tensor] = Tensor.clone) -> list[Tensor]:
    """The results of a case, and the gradients of its inputs."""
    with torch.no_grad():
        leaves = [layout(each).requires_grad_(each.is_floating_point() and not case.forward_only) for each in inputs]
    results = case.function(*leaves)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    for result in results:
        if result.requires_grad:
            factor = (torch.arange(result.numel()) * 37 % 101 - 50).to(result.dtype).view(result.shape)
            result.backward(factor, retain_graph=True)
    return [each.detach() for each in results] + [leaf.grad for leaf in leaves if leaf.grad is not None]


def fingerprint(tensors: list[Tensor]) -> str:
    done = hashlib.sha256()
    for each in tensors:
        each = each.cpu()
        each = each.view(torch.int16) if each.dtype == torch.bfloat16 else each
        done.update(f"{each.dtype}{list(each.shape)}".encode() + each.contiguous().numpy().tobytes())
    return done.hexdigest()


def is_far(tensors: list[Tensor], expected: list[Tensor], close: float | None) -> bool:
    for a, b in zip(tensors, expected, strict=True):
        if not a.is_floating_point():
            if not torch.equal(a.long(), b.long()):
                return True
        else:
            finite = b.isfinite()
            error = (a.double() - b)[finite].abs().max().item() if finite.any() else 0.0
            if error > (close or CLOSE[a.dtype]) * max(b[finite].abs().max().item() if finite.any() else 0.0, 1e-30):
                return True
            if not torch.equal(a.double()[~finite].nan_to_num(nan=7.0), b[~finite].nan_to_num(nan=7.0)):
                return True
    return False


def wide(x: Tensor) -> Tensor:
    return x.double() if x.is_floating_point() else x


def main(names: list[str]) -> None:
    report: dict[str, Any] = {"fingerprints": {}, "differ": [], "far": [], "failed": {}}
    warnings.simplefilter("ignore")
    fast = compiler.available
    portable.enable()
    for name, case in CASES.items():
        if names and name not in names:
            continue
        try:
            inputs = with_native_ops(case.inputs)()
            first = results(case, inputs)
            report["fingerprints"][name] = same = fingerprint(first)
            for device, threads, kernels, layout in WAYS:
                torch.set_num_threads(threads)
                compiler.available = kernels and fast
                with torch.device(device):
                    result = results(case, [each.to(device) for each in inputs], layout)
                if with_native_ops(fingerprint)(result) != same:
                    report["differ"].append([name, device, threads, kernels, layout.__name__])
            if case.compared:
                expected = with_native_ops(results)(case, [wide(each) for each in inputs])
                if with_native_ops(is_far)(first, expected, case.close):
                    report["far"].append(name)
        except Exception as error:  # which case it is decides, not where it stopped
            report["failed"][name] = f"{type(error).__name__}: {error}"
        finally:
            torch.set_num_threads(1)
            compiler.available = fast
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(sys.argv[1:])
