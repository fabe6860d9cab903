"""Messages about operations without a portable form: prints the lines of errors as JSON."""

import _ctypes
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import util
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import repro.portable.pytorch as portable
from repro.portable.modes.common.refusal import RefusedError
from repro.portable.modes.pytorch.dispatcher import dispatch, exact, libraries, registry

portable.enable()
needs = libraries.needs_pytorch
HERE = f"{__file__}:"
X = torch.eye(3)


def refused(function: Callable[[], Any]) -> str:
    """The error's text, with this file's name left out."""
    try:
        function()
    except RefusedError as error:
        return str(error).replace(HERE, "line ")
    return "passed"


def backward(anomaly: bool) -> str:
    x = X.clone().requires_grad_()
    with torch.autograd.set_detect_anomaly(anomaly, check_nan=False):
        loss = (X.to_sparse() * x).to_dense().sum()  # FORWARD
        return refused(lambda: loss.backward())  # BACKWARD


class allowed:  # noqa: N801
    """Lets an operation through for a while, to come to its backward pass."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __enter__(self) -> None:
        portable.disable()
        portable.enable(allow=self.names)

    def __exit__(self, *_: Any) -> None:
        portable.disable()
        portable.enable()


class Rows(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: int) -> Tensor:
        return torch.histogram(X, 4)[0]  # WORKER


def worker() -> str:
    loader = torch.utils.data.DataLoader(Rows(), num_workers=1, multiprocessing_context="fork")
    said = refused(lambda: list(loader))
    return said.strip().splitlines()[-1]


def without_a_file(text: str) -> str:
    """The last line of stderr of a program that has no file."""
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True).stderr.splitlines()[-1]


def source_that_is_gone() -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text("def run(x):\n    return x.histogram(4)\n")
        spec = util.spec_from_file_location("program", path)
        module = util.module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(module)  # type: ignore[union-attr]
        path.unlink()
        return refused(lambda: module.run(X)).replace(folder, "folder")


def loaded_later() -> dict[str, str]:
    """Operations that a library brings along, as C++ and as Python, when one is loaded and when it is imported."""
    results = {}
    kept = []
    for name in ("loaded", "imported"):
        library = torch._C._dispatch_library("DEF", name, "", "library.cpp", 1)
        library.define(f"{name}::double(Tensor x) -> Tensor", "")
        library.impl("double", "CPU", lambda keys, x: x + x, True)
        kept.append(library)
        if name == "loaded":
            torch.ops.load_library(str(Path(torch.__file__).parent / "lib" / "libtorch_global_deps.so"))
        else:
            libraries.needs_pytorch = lambda path: True
            spec = util.find_spec("_lsprof")
            spec.loader.exec_module(util.module_from_spec(spec))  # type: ignore[union-attr, arg-type]
        operation = getattr(torch.ops, name).double
        results[name] = refused(partial(operation, X))
        results[f"{name}, integers"] = refused(partial(operation, torch.arange(3)))
    custom = torch.library.custom_op("mine::double", lambda x: x + x, mutates_args=(), schema="(Tensor x) -> Tensor")
    portable.disable()
    portable.enable()
    results["custom"] = refused(lambda: custom(X))
    return results


# --- all operations ---------------------------------------------------------------------------------------------------


def kinds() -> dict[str, list[str]]:
    """Operations of the dispatcher by their kind, and those that run PyTorch's own kernels for no reason that is known."""
    by_kind: dict[str, list[str]] = {"none": []}
    for full in torch._C._dispatch_get_all_op_names():
        kind = registry.kind_of(full)
        by_kind.setdefault(kind, []).append(full)
        kernels = [line for line in torch._C._dispatch_dump(full).splitlines() if ": registered at " in line]
        ours = any(registry.__file__ in line for line in kernels)
        made = any("CompositeImplicit" in line for line in kernels) or all(".py:" in line for line in kernels)
        space, name = full.split("::")
        made = made or space in exact.NAMESPACES or exact.is_window(name)
        if ours != (kind in CAUGHT) or not (ours or kind == registry.EXACT or made):
            by_kind["none"].append(full)
    return by_kind


CAUGHT = {registry.GUARDED, registry.SPECIAL, registry.DEFINED, registry.REPLACED, registry.REFUSED}


def layouts() -> dict[str, str]:
    """Operations that have kernels for other layouts alone, or compute in what is registered as made of others."""
    crow, column, dense = torch.tensor([0, 1, 2, 3]), torch.tensor([0, 1, 2]), torch.ones(3, 3)
    rows = torch.sparse_csr_tensor(crow, column, torch.ones(3), (3, 3))
    coordinates = torch.sparse_coo_tensor(torch.stack([column, column]), torch.ones(3), (3, 3))
    calls: dict[str, Callable[[], Any]] = {
        **{f"mm {kind}": partial(torch.sparse.mm, rows, dense, kind) for kind in ("sum", "mean", "amax", "amin")},
        "hspmm": lambda: torch.hspmm(coordinates, dense),
        "softmax": lambda: torch.sparse.softmax(coordinates, 1),
        "matmul": lambda: torch.sparse.mm(coordinates, coordinates),
        "sums by rows": lambda: rows + rows,
        "sparse product": lambda: coordinates * coordinates,
        "sparse norm": lambda: torch.native_norm(coordinates),
        "fbgemm": lambda: torch.fbgemm_pack_gemm_matrix_fp16(dense),
    }
    return {name: refused(call) for name, call in calls.items()}


def allowed_layouts() -> list[Any]:
    """Of a sparse tensor: the result, and how often it was run natively."""
    column = torch.tensor([0, 1, 2])
    coordinates = torch.sparse_coo_tensor(torch.stack([column, column]), torch.ones(3), (3, 3))
    with allowed("coalesce"):
        before = dispatch.ran_natively["coalesce"]
        result = coordinates.coalesce()
        return [result.is_coalesced(), dispatch.ran_natively["coalesce"] - before]


def main() -> None:
    enabling = "import torch, repro.portable.pytorch as p\np.enable()\n"
    results = {
        "forward": refused(lambda: torch.histogram(X, 4)),  # HERE
        "complex": refused(lambda: torch.linalg.cholesky(X.to(torch.complex64))),
        "sparse": refused(lambda: torch.sparse.softmax(X.to_sparse(), 1)),
        "transform": refused(lambda: torch.fft.rfft(torch.zeros(2**23 + 1))),
        "library": refused(lambda: torch.histogramdd(X, (2, 2, 2))),  # LIBRARY
        "backward": backward(False),
        "anomaly": backward(True),
        "worker": worker(),
        "command line": without_a_file(f"{enabling}torch.histogram(torch.eye(2), 4)"),
        "cell": without_a_file(
            f"{enabling}exec(compile('torch.histogram(torch.eye(2), 4)', '<ipython-input-3>', 'exec'))"
        ),
        "source that is gone": source_that_is_gone(),
        "kinds": kinds(),
        "layouts": layouts(),
        "allowed layouts": allowed_layouts(),
        "later": loaded_later(),
        "needs PyTorch": [needs(torch._C.__file__), needs(str(_ctypes.__file__))],
    }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
