"""Four tasks of threads draw a number each, in an order that the second argument has; the numbers are printed by task.

`python threads_draw.py WAY ORDER GENERATOR [SEED]`: a way of `threads`, `executor`, `queue` and `pool`.
"""

import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from multiprocessing.pool import ThreadPool

way, order, generator, *seeds = sys.argv[1:]
module = import_module(generator)
drawing = {
    "random": lambda: module.random(),
    "numpy.random": lambda: module.rand(),
    "torch": lambda: module.rand(1).item() + module.zeros(1).uniform_().item(),
}
draw_one = drawing[generator]
for seed in seeds:
    (module.manual_seed if generator == "torch" else module.seed)(int(seed))
turns = [threading.Event() for _ in range(5)]
turns[0].set()
results: dict[int, float] = {}


def draw(task: int) -> None:
    turn = order.index(str(task))
    turns[turn].wait()
    results[task] = draw_one()
    turns[turn + 1].set()


def take() -> None:
    while (task := tasks.get()) is not None:
        draw(task)


tasks: queue.Queue[int | None] = queue.Queue()
if way == "executor":
    with ThreadPoolExecutor(4) as executor:
        [*executor.map(draw, range(4))]
elif way == "pool":
    with ThreadPool(4) as pool:
        pool.map(draw, range(4), chunksize=1)
else:
    for task in [*range(4), None, None, None, None]:
        tasks.put(task)
    each = [threading.Thread(target=take) for _ in range(4)]
    if way == "threads":
        each = [threading.Thread(target=draw, args=(number,)) for number in range(4)]
    for thread in each:
        thread.start()
    for thread in each:
        thread.join()
print([results[task] for task in range(4)], draw_one())
