"""Updates by hand in PyTorch: what lies between two backward passes.

As long as the program has made no optimizer, each backward pass begins a step, whose weights are the leaves of the next
one's graph, or of its own at the end. A first step is believed only once the weights have changed.
"""

import atexit
import sys
import weakref
from typing import Any, Optional

from . import generators, hashing, modules, recorder, scalars

INDEX = "0"  # number of the optimizer that the program itself is

Leaves = list[tuple[str, Any]]  # name, tensor


class ByHand:
    """The step that the last backward pass began."""

    def __init__(self, torch: Any):
        self.torch = torch
        self.off = False  # an optimizer was made, or Keras, which has its own
        self.reset()

    def reset(self) -> None:
        self.started = False  # True once weights were seen to change
        self.leaves: list[tuple[str, Any]] = []  # weak references from the last pass
        self.shapes: list[Any] = []
        self.first: dict[str, str] = {}
        self.pending: Optional[dict[str, Any]] = None

    def stop(self) -> None:
        self.off, self.pending = True, None

    def before(self, roots: Any) -> None:
        """Ends the step that the last pass began, and begins another one."""
        active = recorder.active
        if active is None or self.off or "keras" in sys.modules:
            return
        leaves = leaves_of(roots)
        self.end(leaves)
        self.leaves = [(name, weakref.ref(leaf)) for name, leaf in leaves]
        self.shapes = [leaf.shape for _, leaf in leaves]
        due = active.is_due(active.steps + 1)
        if not self.started:
            self.first = hash_leaves(leaves)
        self.pending = {"generator": generators.hashes(), "scalars": {scalars.PASSES: "1"}} if due else {}

    def after(self) -> None:
        """The gradients of the pass."""
        if self.pending:
            leaves = [(name, reference()) for name, reference in self.leaves]
            self.pending["gradients"] = hash_leaves(
                [(name, leaf.grad) for name, leaf in leaves if leaf is not None and leaf.grad is not None]
            )

    def end(self, following: Leaves) -> None:
        """Writes the step's line, with the weights of the pass that follows, or of its own if that has others."""
        active, pending = recorder.active, self.pending
        self.pending = None
        if active is None or pending is None or self.off:
            return
        if [leaf.shape for _, leaf in following] != self.shapes:
            alive = [(name, reference()) for name, reference in self.leaves]
            following = [(name, leaf) for name, leaf in alive if leaf is not None]
        weights = hash_leaves(following) if pending or not self.started else {}
        if not self.started:
            if weights == self.first or not weights:
                return
            self.started = True
            pending[recorder.INITIAL] = self.first
        number = active.count()
        if pending:
            active.step(number, {**pending, "weights": weights})


def leaves_of(roots: Any) -> Leaves:
    """The leaves of a graph, by their names in a module, or in the order in which they are met."""
    names = {key: name for root in modules.known_modules() for key, name in modules.names_in(root)}
    nodes = [getattr(root, "grad_fn", None) for root in (roots if isinstance(roots, (list, tuple)) else [roots])]
    met: set[Any] = set()
    leaves: Leaves = []
    while nodes:
        node = nodes.pop()
        if node is None or node in met:
            continue
        met.add(node)
        leaf = getattr(node, "variable", None)  # of an AccumulateGrad
        if leaf is not None:
            leaves.append((f"{INDEX}.{names.get(id(leaf), f'leaf {len(leaves)}')}", leaf))
        nodes += [following for following, _ in reversed(node.next_functions)]
    return leaves


def hash_leaves(leaves: Leaves) -> dict[str, str]:
    return hashing.hash_named(leaves)


def watch(by_hand: ByHand) -> None:
    """Writes the last step when the program ends."""
    atexit.register(recorder.never_raise(lambda: by_hand.end([])))
