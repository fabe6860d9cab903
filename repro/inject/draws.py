"""A generator of its own for each task of a thread, where threads draw from one that all share.

Tasks are threads, what an executor or a pool of threads is given, and what a thread takes from a queue. A task's seed follows from
the states of the generators where it is handed over, and from its number there: so what it draws is the same in each run,
whichever thread comes first, and another one only where those states were. The first thread goes on drawing from what is shared.
"""

import functools
import hashlib
import os
import random
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable
from types import ModuleType
from typing import Any, Optional

from . import imports, marks

FUNCTIONS = ("rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial")
METHODS = ("uniform_", "normal_", "random_", "exponential_", "bernoulli_", "geometric_", "bernoulli", "multinomial")
"""What takes a generator in PyTorch: functions, and methods of tensors."""


class Task:
    """What a thread does, by its number among those of its giver, and the states of the shared generators when it was handed over."""

    def __init__(self, name: str, states: dict[str, Any]):
        self.name, self.states = name, states
        self.generators: dict[str, Any] = {}
        self.handed_over: Counter[str] = Counter()

    def numbered(self, number: object, states: Optional[dict[str, Any]] = None) -> "Task":
        """A task that this one hands over."""
        return Task(f"{self.name}/{number}", states or self.states)

    def seed(self, kind: str) -> int:
        """The seed of its own generator of a kind."""
        code = f"{self.name}/{self.states.get(kind)}".encode()
        return int.from_bytes(hashlib.blake2b(code, digest_size=4).digest(), "big")


class OwnDraws:
    """The tasks of a process."""

    def __init__(self, value: str):
        self.local = threading.local()
        self.first = Task(value, {})
        self.states: dict[str, Callable[[], Any]] = {}  # of the generators that are shared
        self.makers: dict[str, Callable[[int], Any]] = {}

    @property
    def task(self) -> Optional[Task]:
        """The task of this thread; None in the first one, and in those that Python did not start."""
        return getattr(self.local, "task", None)

    def begin(self, task: Optional[Task]) -> None:
        """Begins a task in this thread, unless it has none, as the first one."""
        if task is not None and self.task is not None:
            self.local.task = task

    def hand_over(self, way: str) -> Task:
        """Makes a task that is handed over by this thread; an executor starts threads by chance, so each way has its numbers."""
        giver = self.task or self.first
        giver.handed_over[way] += 1
        states = {} if self.task else {name: state() for name, state in self.states.items()}
        return giver.numbered((way, giver.handed_over[way]), states)

    def generator(self, kind: str) -> Any:
        """The generator that this thread draws from instead of the shared one; None in the first thread."""
        task = self.task
        if task is None:
            return None
        if kind not in task.generators:
            task.generators[kind] = self.makers[kind](task.seed(kind))
            marks.leave(kind)
        return task.generators[kind]

    # --- generators -------------------------------------------------------------------------------------------------

    def share(self, kind: str, module: Any, shared: Any, make: Callable[[int], Any], state: Callable[[], Any]) -> None:
        """Splits a module's functions, which are methods of one shared generator."""
        self.makers[kind], self.states[kind] = make, state
        for name, function in list(vars(module).items()):
            if getattr(function, "__self__", None) is shared:
                setattr(module, name, self._split(kind, name, function))

    def _split(self, kind: str, name: str, function: Any) -> Any:
        @functools.wraps(function)
        def drawn(*args: Any, **kwargs: Any) -> Any:
            own = self.generator(kind)
            return function(*args, **kwargs) if own is None else getattr(own, name)(*args, **kwargs)

        return drawn

    def share_numpy(self, numpy: ModuleType) -> None:
        """Splits the functions of NumPy's old interface."""
        shared = numpy.random.mtrand._rand

        def state() -> int:
            _, numbers, place, *_ = shared.get_state()
            return hash((*numbers.tolist(), place))

        self.share("numpy", numpy.random, shared, numpy.random.RandomState, state)

    def share_torch(self, torch: ModuleType) -> None:
        """Gives PyTorch's functions a generator, where they are given none, and draw on the CPU."""
        self.makers["torch"] = lambda seed: torch.Generator().manual_seed(seed)
        self.states["torch"] = lambda: torch.get_rng_state().numpy().tobytes()
        for owner, names in ((torch, FUNCTIONS), (torch.Tensor, METHODS)):
            for name in names:
                setattr(owner, name, self._with_generator(torch, getattr(owner, name)))

    def _with_generator(self, torch: ModuleType, function: Any) -> Any:
        @functools.wraps(function)
        def drawn(*args: Any, **kwargs: Any) -> Any:
            if self.task is not None and kwargs.get("generator") is None:
                tensors = (one.device for one in args if isinstance(one, torch.Tensor))
                if torch.device(kwargs.get("device") or next(tensors, "cpu")).type == "cpu":
                    kwargs["generator"] = self.generator("torch")
            return function(*args, **kwargs)

        return drawn

    # --- tasks ------------------------------------------------------------------------------------------------------

    def follow_thread(self, thread: Any) -> None:
        """Makes a thread that is about to start begin a task."""
        run, task = thread.run, self.hand_over("thread")

        def followed() -> None:
            self.local.task = task
            run()

        thread.run = followed

    def follow_queue(self, module: ModuleType) -> None:
        """Makes what a thread takes from a queue a task, in the order in which it was put there."""
        put, get = module.Queue._put, module.Queue._get

        def _put(queue: Any, item: Any) -> None:
            vars(queue).setdefault("_repro_tasks", deque()).append(self.hand_over("queue"))
            put(queue, item)

        def _get(queue: Any) -> Any:
            tasks = vars(queue).get("_repro_tasks")
            self.begin(tasks.popleft() if tasks else None)
            return get(queue)

        module.Queue._put, module.Queue._get = _put, _get

    def follow_executor(self, module: ModuleType) -> None:
        """Makes what an executor is given a task, in the order in which it was given."""
        kind = module._WorkItem
        make, run = kind.__init__, kind.run

        def __init__(item: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            make(item, *args, **kwargs)
            item._repro_task = self.hand_over("executor")

        def followed(item: Any, *args: Any) -> None:
            self.begin(item._repro_task)
            run(item, *args)

        kind.__init__, kind.run = __init__, followed

    def follow_pool(self, module: ModuleType) -> None:
        """Makes what a pool of threads is given a task, by its number; a pool of processes has no threads that draw."""
        worker = module.worker

        def followed(inqueue: Any, *args: Any, **kwargs: Any) -> None:
            task = self.task  # of one of several threads: an item may come to any of them
            items = _Items(inqueue, self, Task(f"{self.first.name}/pool", task.states)) if task else inqueue
            worker(items, *args, **kwargs)

        vars(module)["worker"] = followed

    def forget(self) -> None:
        """Begins anew in a process that was forked: its only thread is its first."""
        self.local = threading.local()


class _Items:
    """The queue of a pool of threads."""

    def __init__(self, queue: Any, draws: OwnDraws, task: Task):
        self.queue, self.draws, self.task = queue, draws, task

    def get(self) -> Any:
        item = self.queue.get()
        if item is not None:
            self.draws.begin(self.task.numbered(item[:2]))  # the job, and its part
        return item


def separate(value: str) -> None:
    """Gives each task of a thread generators of its own, with seeds by this value."""
    draws = OwnDraws(value)
    shared = vars(random)["_inst"]
    draws.share("python", random, shared, random.Random, lambda: hash(shared.getstate()[1]))
    start = threading.Thread.start

    @functools.wraps(start)
    def followed(thread: threading.Thread) -> None:
        draws.follow_thread(thread)
        start(thread)

    vars(threading)["Thread"].start = followed
    os.register_at_fork(after_in_child=draws.forget)
    for name, follow in (
        ("queue", draws.follow_queue),
        ("concurrent.futures.thread", draws.follow_executor),
        ("multiprocessing.pool", draws.follow_pool),
        ("numpy", draws.share_numpy),
        ("torch", draws.share_torch),
    ):
        if name in sys.modules:
            follow(sys.modules[name])
        else:
            imports.finder.when_imported(name, follow)
    imports.start()
