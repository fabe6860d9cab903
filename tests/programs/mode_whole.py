"""The mode among threads, forks, exceptions, compilers, tracers and other modes: prints as JSON what holds."""

import contextlib
import io
import json
import multiprocessing
import os
import sys
from typing import Any

import psutil
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import repro.portable.pytorch as portable
from programs import process_cases  # noqa: F401
from programs.whole_cases import CASES, Expected, X, case, expect, numbers, ours, work
from repro.portable.modes.pytorch.dispatcher import dispatch


@torch.compile
def compiled_before(x: Tensor) -> Tensor:
    return torch.tanh(x @ x) + x.sum()


# --- other modes, subclasses, hooks -----------------------------------------------------------------------------------


class Seen(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


class Called(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


class Wrapper(Tensor):
    """A subclass that holds another tensor."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Wrapper":
        self = Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, requires_grad=inner.requires_grad)
        self.inner = inner
        return self

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        plain = torch.utils._pytree.tree_map_only(Wrapper, lambda x: x.inner, (args, kwargs or {}))
        return torch.utils._pytree.tree_map_only(Tensor, Wrapper, function(*plain[0], **plain[1]))


@case
def other_modes_and_subclasses_go_along() -> dict[str, bool]:
    from torch.utils.flop_counter import FlopCounterMode

    results = {"subclass": ours(lambda x: work(Wrapper(x)).inner, X)}
    contexts = {
        "dispatch mode": Seen(),
        "function mode": Called(),
        "counter": FlopCounterMode(display=False),
        "inference": torch.inference_mode(),
        "anomaly": torch.autograd.detect_anomaly(check_nan=False),
        "profiler": torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]),
        "device": torch.device("cpu"),
        "saved tensors": torch.autograd.graph.save_on_cpu(),
    }
    for name, context in contexts.items():
        with context:
            results[name] = ours(work, X)
    return results


@case
def hooks_of_saved_tensors_compute_portably() -> bool:
    before = dispatch.counts["mm"]
    x = X.clone().requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t @ t, lambda t: t):
        torch.sin(x).sum().backward()
    return dispatch.counts["mm"] == before + 1 and not dispatch.thread.inside


@case
def defaults_of_types_and_devices() -> list[Any]:
    torch.set_default_dtype(torch.float64)
    wide = work(X.double()).dtype == torch.float64
    torch.set_default_dtype(torch.float32)
    torch.set_default_device("meta")
    meta = work(torch.empty(4, 4)).device.type
    torch.set_default_device(None)
    return [wide, meta, ours(work, X)]


@case
def questions_about_the_machine_have_one_answer() -> list[Any]:
    from torch.nn.modules import linear_cross_entropy_options as losses

    kind = losses.LinearCrossEntropyOptions
    own = vars(kind)["_resolve_auto_acc_dtype"]
    results = [torch.backends.cpu.get_cpu_capability(), torch._C._get_cpu_capability()]
    types = (kind._resolve_auto_acc_dtype(dtype, torch.device("cuda")) for dtype in (torch.bfloat16, torch.float32))
    results.extend(map(str, types))
    portable.disable()
    results.append(vars(kind)["_resolve_auto_acc_dtype"] is not own)
    portable.enable()
    return results


@case
def numbers_of_threads_and_cores_have_one_answer() -> list[Any]:
    before = torch._C.get_num_threads()
    results = [os.cpu_count(), len(os.sched_getaffinity(0)), multiprocessing.cpu_count(), torch.get_num_threads()]
    features = torch.cpu.get_capabilities()
    results += [features["num_logical_cores"], features["avx2"], features.get("avx512_f", False)]
    torch.set_num_threads(3)
    results += [torch.get_num_threads(), torch._C.get_num_threads()]
    torch.set_num_threads(results[3])
    results += [torch.get_num_threads(), torch._C.get_num_threads() == before]
    results.append(set(os.sched_getaffinity(0)) == {*map(int, psutil.Process().cpu_affinity())})
    portable.disable()
    results.append(os.cpu_count() == psutil.cpu_count())
    portable.enable()
    return results


# --- compilers and tracers --------------------------------------------------------------------------------------------


@case
def compiled_functions_run_eagerly_and_one_note_says_so() -> list[Any]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        results = [ours(compiled_before, X), ours(torch.compile(work), X), ours(torch.compile(work, fullgraph=True), X)]
    return [*results, said.getvalue()]


@case
def modules_and_optimizers_that_are_compiled_are_what_they_are_otherwise() -> list[Any]:
    model = torch.compile(nn.Linear(31, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    before = dispatch.counts["linear"]
    model(X).sum().backward()
    torch.compile(optimizer.step)()
    return [list(model.state_dict()), dispatch.counts["linear"] - before]


@case
def scripted_functions_come_by() -> list[bool]:
    scripted = torch.jit.script(work)
    return [ours(scripted, X) for _ in range(3)] + [not torch._C._jit_texpr_fuser_enabled()]


class Model(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return work(x)


@case
def tracers_see_the_operations_of_pytorch() -> dict[str, Any]:
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    results: dict[str, Any] = {}
    for strict in (False, True):
        program = torch.export.export(Model(), (X,), strict=strict)
        names = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
        results[f"export {strict}"] = [names, ours(program.module(), X)]
    with FakeTensorMode():
        results["fake"] = list(torch.softmax(torch.empty(3, 4) @ torch.empty(4, 5), -1).shape)
    traced = make_fx(work)(X)
    results["fx"] = [str(node.target) for node in traced.graph.nodes if node.op == "call_function"]
    return results


@case
def transforms_of_functions_come_by() -> list[bool]:
    many = torch.func.vmap(work)(torch.stack([X, X]))
    tangent = torch.func.jvp(lambda x: x @ x, (X,), (X,))[1]
    x = X.clone().requires_grad_()
    torch.utils.checkpoint.checkpoint(work, x, use_reentrant=False).sum().backward()
    return [
        torch.equal(many[1], Expected.result),
        torch.equal(tangent, (X @ X) * 2),
        torch.equal(x.grad, Expected.gradient),
    ]


@case
def flex_attention_runs_eagerly() -> bool:
    from torch.nn.attention.flex_attention import flex_attention

    q = numbers(1, 2, 128, 16)
    before = dispatch.counts["bmm"]
    a = torch.compile(flex_attention)(q, q, q, score_mod=lambda score, b, h, i, j: score + (i - j) * 0.01)
    return dispatch.counts["bmm"] > before and a.shape == q.shape


if __name__ == "__main__":
    portable.enable()
    expect()
    names = sys.argv[1:] or list(CASES)
    found = {}
    for name in names:
        try:
            found[name] = CASES[name]()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
            if sys.argv[1:]:
                raise
    print(json.dumps(found))
