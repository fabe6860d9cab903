"""Cases of mode_whole.py: threads, forks, exceptions, contexts, signal handlers and finalizers."""

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

import repro.portable.pytorch as portable
from programs.whole_cases import Expected, X, case, numbers, ours, work
from repro.portable.modes.pytorch.dispatcher import compilers, dispatch, tables

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
    results: list[list[Tensor]] = []
    before = dispatch.counts.copy()
    threads = [threading.Thread(target=lambda: results.append(train())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    alike = all(torch.equal(a, b) for each in results for a, b in zip(each, alone, strict=True))
    counted = dispatch.counts - before
    return [len(results) == 4, alike, all(counted[name] == 4 * number for name, number in once.items())]


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
    return all(torch.equal(batch, Expected.result) for batch in batches)


class Rows(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, _: int) -> Tensor:
        assert ours(work, X)
        return work(X)


@case
def threads_of_autograd_have_the_mode() -> list[bool]:
    results = []
    for several in (True, False):
        x = X.clone().requires_grad_()
        with torch.autograd.set_multithreading_enabled(several):
            before = dispatch.counts["mm"]
            thread = threading.Thread(target=work(x).sum().backward)
            thread.start()
            thread.join()
            results.append(dispatch.counts["mm"] == before + 3 and torch.equal(x.grad, Expected.gradient))
    return results


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
    definition = tables.definitions[name]
    portable.disable()
    tables.definitions[name] = replace(definition, function=function)
    portable.enable()
    try:
        yield
    finally:
        portable.disable()
        tables.definitions[name] = definition
        portable.enable()


@case
def exceptions_within_a_definition_leave_it_whole() -> list[bool]:
    results = []
    for error in (KeyboardInterrupt, MemoryError, RuntimeError):

        def broken(x: Tensor, error: type[BaseException] = error) -> Tensor:
            raise error

        with defined("tanh", broken):
            try:
                work(X)
            except error:
                results.append(not dispatch.thread.inside)
    return [*results, ours(work, X)]


class Finalized:
    """Computes when the garbage collector meets it."""

    found: ClassVar[list[bool]] = []

    def __init__(self) -> None:
        self.circle = self

    def __del__(self) -> None:
        self.found.append(product_is_ours())


def product_is_ours() -> bool:
    before = dispatch.counts["mm"]
    return torch.equal(X @ X, Expected.product) and dispatch.counts["mm"] > before


@case
def handlers_and_finalizers_amid_a_definition_compute_portably() -> list[Any]:
    """A handler of the program's, from before the mode and from after, and a finalizer; both give the flag back."""
    results: list[Any] = []

    def interrupted(x: Tensor) -> Tensor:
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.raise_signal(number)
        Finalized()
        gc.collect()
        results.append(dispatch.thread.inside)
        return x

    def handler(*_: Any) -> None:
        results.append(product_is_ours())

    portable.disable()
    signal.signal(signal.SIGUSR1, handler)
    with defined("tanh", interrupted):
        signal.signal(signal.SIGUSR2, handler)
        torch.tanh(X)
        results.append([signal.getsignal(number) is handler for number in (signal.SIGUSR1, signal.SIGUSR2)])
    portable.disable()
    results.append(signal.getsignal(signal.SIGUSR2) is handler)
    portable.enable()
    return [*results, Finalized.found, dispatch.thread.inside]


@case
def tracers_and_profilers_amid_a_definition_compute_portably() -> list[Any]:
    """Functions of sys.settrace and sys.setprofile, from before the mode and from after."""
    results: dict[str, bool] = {}

    def interrupted(x: Tensor) -> Tensor:
        return called(x)

    def called(x: Tensor) -> Tensor:
        return x

    def look(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code is called.__code__ and event not in results:
            results[event] = dispatch.thread.inside
            results[event] = product_is_ours()
        return look

    found: list[Any] = []
    for kind in ("trace", "profile"):
        for early in (True, False):
            results.clear()
            portable.disable()
            if early:
                getattr(sys, f"set{kind}")(look)
            with defined("tanh", interrupted):
                if not early:
                    getattr(sys, f"set{kind}")(look)
                torch.tanh(X)
                same = getattr(sys, f"get{kind}")() is look
            portable.disable()
            found.append([same, getattr(sys, f"get{kind}")() is look, dict(results)])
            getattr(sys, f"set{kind}")(None)
    portable.enable()
    return [*found, dispatch.thread.inside]


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
