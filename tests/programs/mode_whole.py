"""The mode among threads, forks, exceptions, compilers, tracers and other modes: prints as JSON what holds."""

import contextlib
import gc
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import repro.portable.pytorch as portable
from repro.portable.pytorch.mode import compilers, dispatch

CASES: dict[str, Callable[[], Any]] = {}


def case(function: Callable[[], Any]) -> Callable[[], Any]:
    CASES[function.__name__] = function
    return function


@torch.compile
def compiled_before(x: Tensor) -> Tensor:
    return torch.tanh(x @ x) + x.sum()


def numbers(*shape: int) -> Tensor:
    x = torch.arange(1, 1 + torch.Size(shape).numel(), dtype=torch.float64)
    return ((x * 0.7548776662466927) % 1 * 2 - 1).float().view(shape)


X = numbers(31, 31)


def work(x: Tensor) -> Tensor:
    return torch.tanh(x @ x) + x.sum()


def ours(function: Callable[..., Any], *arguments: Any) -> bool:
    """Whether the mode computed it: counted, with the bits of `work` under the mode, and whole afterwards."""
    before = dispatch.counts["mm"]
    found = function(*arguments)
    return dispatch.counts["mm"] > before and torch.equal(found, EXPECTED) and not dispatch.thread.inside


# --- threads and processes --------------------------------------------------------------------------------------------


def train() -> list[Tensor]:
    model = nn.Sequential(nn.Linear(31, 20), nn.Tanh(), nn.Linear(20, 3))
    for place, parameter in enumerate(model.parameters()):
        with torch.no_grad():
            parameter.copy_(numbers(*parameter.shape) * (place + 1) * 0.1)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(X).square().mean().backward()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


@case
def threads_train_alike_and_are_counted() -> list[bool]:
    before = dispatch.counts.copy()
    alone = train()
    once = dispatch.counts - before
    found: list[list[Tensor]] = []
    before = dispatch.counts.copy()
    threads = [threading.Thread(target=lambda: found.append(train())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alike = all(torch.equal(a, b) for each in found for a, b in zip(each, alone, strict=True))
    counted = dispatch.counts - before
    return [len(found) == 4, alike, all(counted[name] == 4 * number for name, number in once.items())]


@case
def a_forked_child_has_the_mode_and_may_leave_it() -> int:
    """0 where all holds in the child, which is forked by a thread amid the work of others."""
    status: list[int] = []

    def fork() -> None:
        child = os.fork()
        if not child:
            failed = 1 - ours(work, X)
            portable.disable()
            before = dispatch.counts["mm"]
            work(X)
            failed += 2 * (dispatch.counts["mm"] != before)
            os._exit(failed)
        status.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    other = threading.Thread(target=lambda: [work(X) for _ in range(20)])
    forking = threading.Thread(target=fork)
    other.start()
    forking.start()
    other.join()
    forking.join()
    return status[0] if ours(work, X) else -1


@case
def a_child_of_several_threads_has_several_threads() -> int:
    """0 where it computes the same; the signal ends one that waits for threads of its parent."""
    large = numbers(700, 700)
    torch.set_num_threads(4)
    try:
        expected = work(large)
        child = os.fork()
        if not child:
            signal.alarm(60)
            os._exit(1 - torch.equal(work(large), expected))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        torch.set_num_threads(1)


@case
def workers_of_a_loader_have_the_mode() -> bool:
    batches = list(torch.utils.data.DataLoader(Rows(), batch_size=None, num_workers=1, multiprocessing_context="fork"))
    return all(torch.equal(batch, EXPECTED) for batch in batches)


class Rows(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, _: int) -> Tensor:
        assert ours(work, X)
        return work(X)


@case
def threads_of_autograd_have_the_mode() -> list[bool]:
    found = []
    for several in (True, False):
        x = X.clone().requires_grad_()
        with torch.autograd.set_multithreading_enabled(several):
            before = dispatch.counts["mm"]
            thread = threading.Thread(target=work(x).sum().backward)
            thread.start()
            thread.join()
            found.append(dispatch.counts["mm"] == before + 3 and torch.equal(x.grad, GRADIENT))
    return found


@case
def it_may_be_switched_on_while_another_thread_runs() -> bool:
    failed: list[BaseException] = []
    on = threading.Event()

    def run() -> None:
        try:
            while not on.is_set():
                train()
        except BaseException as error:  # whatever it is
            failed.append(error)

    portable.disable()
    thread = threading.Thread(target=run)
    thread.start()
    portable.enable()
    on.set()
    thread.join()
    return not failed and ours(work, X)


# --- exceptions, contexts ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def defined(name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Another definition of an operation, for a while."""
    definition = dispatch.definitions[name]
    portable.disable()
    dispatch.definitions[name] = replace(definition, function=function)
    portable.enable()
    try:
        yield
    finally:
        portable.disable()
        dispatch.definitions[name] = definition
        portable.enable()


@case
def exceptions_within_a_definition_leave_it_whole() -> list[bool]:
    found = []
    for error in (KeyboardInterrupt, MemoryError, RuntimeError):

        def broken(x: Tensor, error: type[BaseException] = error) -> Tensor:
            raise error

        with defined("tanh", broken):
            try:
                work(X)
            except error:
                found.append(not dispatch.thread.inside)
    return [*found, ours(work, X)]


class Finalized:
    """Computes when the garbage collector meets it."""

    found: ClassVar[list[bool]] = []

    def __init__(self) -> None:
        self.circle = self

    def __del__(self) -> None:
        self.found.append(product_is_ours())


def product_is_ours() -> bool:
    before = dispatch.counts["mm"]
    return torch.equal(X @ X, PRODUCT) and dispatch.counts["mm"] > before


@case
def handlers_and_finalizers_amid_a_definition_compute_portably() -> list[Any]:
    """A handler of the program's, from before the mode and from after, and a finalizer; both give the flag back."""
    found: list[Any] = []

    def interrupted(x: Tensor) -> Tensor:
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.raise_signal(number)
        Finalized()
        gc.collect()
        found.append(dispatch.thread.inside)
        return x

    def handler(*_: Any) -> None:
        found.append(product_is_ours())

    portable.disable()
    signal.signal(signal.SIGUSR1, handler)
    with defined("tanh", interrupted):
        signal.signal(signal.SIGUSR2, handler)
        torch.tanh(X)
        found.append([signal.getsignal(number) is handler for number in (signal.SIGUSR1, signal.SIGUSR2)])
    portable.disable()
    found.append(signal.getsignal(signal.SIGUSR2) is handler)
    portable.enable()
    return [*found, Finalized.found, dispatch.thread.inside]


@case
def contexts_nest() -> list[bool]:
    portable.disable()
    flags = torch._C._get_mkldnn_enabled(), compilers.COMPILER in sys.modules
    with portable.enable():
        with portable.enable():
            inner = ours(work, X)
        outer = ours(work, X)
    before = dispatch.counts["mm"]
    work(X)
    off = dispatch.counts["mm"] == before and torch._C._get_mkldnn_enabled() == flags[0]
    portable.enable()
    with portable.enable():
        pass
    return [inner, outer, off, ours(work, X)]


@case
def other_options_are_refused_while_it_is_on() -> list[str]:
    said = []
    for options in ({"allow": ["linalg_svd"]}, {"precision": "highest"}):
        try:
            portable.enable(**options)
        except Exception as error:
            said.append(str(error))
    return said


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

    found = {"subclass": ours(lambda x: work(Wrapper(x)).inner, X)}
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
            found[name] = ours(work, X)
    return found


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
    found = [torch.backends.cpu.get_cpu_capability(), torch._C._get_cpu_capability()]
    types = (kind._resolve_auto_acc_dtype(dtype, torch.device("cuda")) for dtype in (torch.bfloat16, torch.float32))
    found.extend(map(str, types))
    portable.disable()
    found.append(vars(kind)["_resolve_auto_acc_dtype"] is not own)
    portable.enable()
    return found


# --- compilers and tracers --------------------------------------------------------------------------------------------


@case
def compiled_functions_run_eagerly_and_one_note_says_so() -> list[Any]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        found = [ours(compiled_before, X), ours(torch.compile(work), X), ours(torch.compile(work, fullgraph=True), X)]
    return [*found, said.getvalue()]


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

    found: dict[str, Any] = {}
    for strict in (False, True):
        program = torch.export.export(Model(), (X,), strict=strict)
        names = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
        found[f"export {strict}"] = [names, ours(program.module(), X)]
    with FakeTensorMode():
        found["fake"] = list(torch.softmax(torch.empty(3, 4) @ torch.empty(4, 5), -1).shape)
    traced = make_fx(work)(X)
    found["fx"] = [str(node.target) for node in traced.graph.nodes if node.op == "call_function"]
    return found


@case
def transforms_of_functions_come_by() -> list[bool]:
    many = torch.func.vmap(work)(torch.stack([X, X]))
    tangent = torch.func.jvp(lambda x: x @ x, (X,), (X,))[1]
    x = X.clone().requires_grad_()
    torch.utils.checkpoint.checkpoint(work, x, use_reentrant=False).sum().backward()
    return [torch.equal(many[1], EXPECTED), torch.equal(tangent, (X @ X) * 2), torch.equal(x.grad, GRADIENT)]


@case
def flex_attention_runs_eagerly() -> bool:
    from torch.nn.attention.flex_attention import flex_attention

    q = numbers(1, 2, 128, 16)
    before = dispatch.counts["bmm"]
    a = torch.compile(flex_attention)(q, q, q, score_mod=lambda score, b, h, i, j: score + (i - j) * 0.01)
    return dispatch.counts["bmm"] > before and a.shape == q.shape


if __name__ == "__main__":
    portable.enable()
    EXPECTED, PRODUCT = work(X), X @ X
    leaf = X.clone().requires_grad_()
    work(leaf).sum().backward()
    GRADIENT = leaf.grad
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
