"""Recurrent layers and cells, in one form for each device.

PyTorch takes them apart on a CPU, and calls kernels of their own on a GPU.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function, forward_ad
from torch.nn.functional import linear

from repro.portable.compiler.pytorch.plan import run
from repro.portable.compiler.pytorch.scan import Scan
from repro.portable.definitions import recurrent
from repro.portable.modes.pytorch.dispatcher import elastic
from repro.portable.modes.pytorch.dispatcher.dispatch import counts, with_native_ops
from repro.portable.modes.pytorch.dispatcher.tables import replace

State = tuple[Tensor, ...]
run = with_native_ops(run)


@dataclass(frozen=True)
class RecurrentCell:
    """One kind of layer: its step as one definition, the gradient of that, and the same step as separate operations."""

    step: Callable[..., Any]
    back: Callable[..., Any]
    separate: Callable[..., State]


@dataclass(frozen=True)
class PackedTimes:
    """The number of rows at each time, longest sequences first: the sizes of a packed batch, None if all are equal."""

    sizes: tuple[int, ...] | None
    length: int
    reverse: bool

    def order(self) -> list[int]:
        times = list(range(self.length))
        return times[::-1] if self.reverse else times

    def turned(self, x: Tensor) -> Tensor:
        """[T, ...] by time as steps, or steps by time."""
        return x.flip(0) if self.reverse else x


# --- one layer in one direction ---------------------------------------------------------------------------------------


def layer(
    cell: RecurrentCell, x: Tensor, state: State, weights: Sequence[Tensor | None], times: PackedTimes, slices: int
) -> tuple[Tensor, State]:
    """x [rows, I], times after times -> outputs [rows, H] and the last state; weights: of the input, of the state, their biases, of a projection."""
    of_input, of_state, bias, own_bias, projection = weights
    assert of_input is not None and of_state is not None
    given = linear(x, of_input, bias)
    if projection is None and slices == 1 and _is_plain(given, of_state, *state):
        out, *last = _Sequence.apply(cell, times, given, of_state, own_bias, *state)
        return out, tuple(last)
    return _separate(cell, times, given, of_state, own_bias, state, projection)


def _is_plain(*tensors: Tensor) -> bool:
    """True if the one definition holds: float32, and nobody differentiates forward or maps."""
    if torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0:
        return False
    return all(each.dtype == torch.float32 and each.numel() for each in tensors)


def _separate(
    cell: RecurrentCell,
    times: PackedTimes,
    given: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    state: State,
    projection: Tensor | None = None,
) -> tuple[Tensor, State]:
    rows = given.split(list(times.sizes or [given.shape[0] // times.length] * times.length))
    out: dict[int, Tensor] = {}
    for time in times.order():
        size = rows[time].shape[0]
        new = cell.separate(rows[time], tuple(part[:size] for part in state), weight, bias, projection)
        state = tuple(torch.cat((a, b[size:])) if size < b.shape[0] else a for a, b in zip(new, state, strict=True))
        out[time] = new[0]
    return torch.cat([out[time] for time in range(times.length)]), state


class _Sequence(Function):
    """A layer in one direction by one definition for each step, with the bits of separate operations.

    But the gradient of the state's weight is one product over all steps. What is saved is in the order of the steps,
    which is that of time or the reverse.
    """

    @staticmethod
    def forward(
        ctx, cell: RecurrentCell, times: PackedTimes, given: Tensor, weight: Tensor, bias: Tensor | None, *state: Tensor
    ):
        running = _running(times, state[0])
        states, saved = _forward(cell, times, given, weight, bias, state, running)
        if any(ctx.needs_input_grad):
            ctx.cell, ctx.times, ctx.states = cell, times, len(state)
            ctx.save_for_backward(given, weight, bias, *states, *saved)
        rows = times.turned(states[0][1:]).flatten(0, 1)
        out = rows if running is None else rows[times.turned(running).flatten()]
        return out, *(part[-1].clone() for part in states)

    @staticmethod
    def backward(ctx, grad_out: Tensor, *grad_state: Tensor):
        given, weight, bias, *saved = ctx.saved_tensors
        states, saved = saved[: ctx.states], saved[ctx.states :]
        state = tuple(each[0] for each in states)
        if torch.is_grad_enabled():  # somebody differentiates the gradient
            return None, None, *_differentiable(ctx, (given, weight, bias, *state), (grad_out, *grad_state))
        running = _running(ctx.times, state[0])
        of_given, of_own, of_state = _backward(ctx, weight, grad_out, grad_state, states, saved, running)
        before, needs = states[0][:-1].flatten(0, 1), ctx.needs_input_grad
        if elastic.wanted():
            grad_weight = with_native_ops(elastic.of_rows)(before, of_own, weight) if needs[3] else None
        else:
            grad_weight = of_own.t().mm(before) if needs[3] else None
        grad_bias = of_own.sum(0) if bias is not None and needs[4] else None
        of_given = ctx.times.turned(of_given).flatten(0, 1)
        of_given = of_given if running is None else of_given[ctx.times.turned(running).flatten()]
        return None, None, of_given, grad_weight, grad_bias, *of_state


def _running(times: PackedTimes, state: Tensor) -> Tensor | None:
    """True for sequences that have a row at a step, bool [T, N, 1]."""
    if times.sizes is None:
        return None
    sizes = torch.tensor(times.sizes, device=state.device)
    return times.turned((torch.arange(state.shape[0], device=state.device) < sizes[:, None])[..., None])


def _padded(times: PackedTimes, rows: Tensor, running: Tensor | None) -> Tensor:
    """Rows of all times, [rows, C], as steps: [T, N, C]."""
    if running is None:
        return times.turned(rows.view(times.length, -1, rows.shape[1]))
    padded = rows.new_zeros(*running.shape[:2], rows.shape[1])
    return times.turned(padded.masked_scatter_(times.turned(running), rows))


@with_native_ops
def _forward(
    cell: RecurrentCell,
    times: PackedTimes,
    given: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    state: State,
    running: Tensor | None,
) -> tuple[list[Tensor], list[Tensor]]:
    """Computes the states before each step and after the last one, and what each step saves."""
    ahead, _ = run(recurrent.weights, weight)
    return Scan(_step, cell.step, (_padded(times, given, running), running), state, (ahead, bias)).run()


def _step(xp: Any, step: Any, moving: Any, state: Any, fixed: Any) -> Any:
    return step(xp, moving[0], state, *fixed, moving[1])


@with_native_ops
def _backward(
    ctx: Any,
    weight: Tensor,
    grad_out: Tensor,
    gradients: State,
    states: list[Tensor],
    saved: list[Tensor],
    running: Tensor | None,
) -> Any:
    """Gradients of what was given, [T, N, G H], of the state's products, [T N, G H], and of the first state."""
    _, back = run(recurrent.weights, weight)
    before = [each[:-1] for each in states]
    moving = _padded(ctx.times, grad_out, running), running, *before, *saved
    of_states, results = Scan(_step_back, ctx.cell.back, moving, gradients, (back,), backwards=True).run()
    of_given, of_own = results[0], results[-1]
    return of_given, of_own.flatten(0, 1), [each[0] for each in of_states]


def _step_back(xp: Any, back: Any, moving: Any, gradients: Any, fixed: Any) -> Any:
    """The output of a step is its state: both gradients count."""
    grad_out, running, *saved = moving
    total = xp.f32(xp.f64(grad_out) + xp.f64(gradients[0]))
    count = len(gradients)
    state, saved = tuple(saved[:count]), tuple(saved[count:])
    of_given, of_own, new = back(xp, (total, *gradients[1:]), state, saved, *fixed, running)
    return new, (of_given,) if of_own is of_given else (of_given, of_own)


def _differentiable(ctx: Any, inputs: tuple[Tensor | None, ...], gradients: State) -> list[Tensor | None]:
    given, weight, bias, *state = inputs
    assert given is not None and weight is not None
    out, last = _separate(ctx.cell, ctx.times, given, weight, bias, tuple(state))
    wanted = [each for each, need in zip(inputs, ctx.needs_input_grad[2:], strict=True) if need]
    derivatives = iter(torch.autograd.grad((out, *last), wanted, gradients, create_graph=True, materialize_grads=True))
    return [next(derivatives) if need else None for need in ctx.needs_input_grad[2:]]


# --- steps as separate operations -------------------------------------------------------------------------------------


def _lstm(x: Tensor, state: State, weight: Tensor, bias: Tensor | None, projection: Tensor | None) -> State:
    hidden, cell = state
    ingoing, forgetting, candidate, outgoing = (x + linear(hidden, weight, bias)).chunk(4, 1)
    cell = forgetting.sigmoid() * cell + ingoing.sigmoid() * candidate.tanh()
    hidden = outgoing.sigmoid() * cell.tanh()
    return hidden if projection is None else linear(hidden, projection), cell


def _gru(x: Tensor, state: State, weight: Tensor, bias: Tensor | None, projection: Tensor | None) -> State:
    own, given = linear(state[0], weight, bias).chunk(3, 1), x.chunk(3, 1)
    reset, update = (own[0] + given[0]).sigmoid(), (own[1] + given[1]).sigmoid()
    new = (given[2] + own[2] * reset).tanh()
    return ((state[0] - new) * update + new,)


def _elman(function: Callable[[Tensor], Tensor]) -> Callable[..., State]:
    def step(x: Tensor, state: State, weight: Tensor, bias: Tensor | None, projection: Tensor | None) -> State:
        return (function(x + linear(state[0], weight, bias)),)

    return step


CELLS = {
    "lstm": RecurrentCell(recurrent.lstm, recurrent.lstm_back, _lstm),
    "gru": RecurrentCell(recurrent.gru, recurrent.gru_back, _gru),
    "rnn_tanh": RecurrentCell(recurrent.rnn_tanh, recurrent.rnn_tanh_back, _elman(torch.tanh)),
    "rnn_relu": RecurrentCell(recurrent.rnn_relu, recurrent.rnn_relu_back, _elman(torch.relu)),
}


# --- PyTorch's operations ---------------------------------------------------------------------------------------------


def layers(
    cell: RecurrentCell,
    x: Tensor,
    states: list[State],
    parameters: Sequence[Tensor],
    sizes: tuple[int, ...] | None,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
    *,
    slices: int,
) -> tuple[Tensor, list[State]]:
    """All layers in both directions, of [T, N, I] or of packed rows."""
    x = x.transpose(0, 1) if batch_first else x
    shape = x.shape[:-1]
    length = len(sizes) if sizes else shape[0]
    if not length:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")  # as PyTorch
    weights = _of_layers(parameters, has_biases, len(states))
    last: list[State] = []
    for depth in range(num_layers):
        rows, result = x.reshape(-1, x.shape[-1]), []
        for reverse in (False, True)[: 1 + bidirectional]:
            at = len(last)
            out, state = layer(cell, rows, states[at], weights[at], PackedTimes(sizes, length, reverse), slices)
            result.append(out)
            last.append(state)
        x = torch.cat(result, 1) if bidirectional else result[0]
        x = x.view(*shape, x.shape[-1])
        if dropout and train and depth < num_layers - 1:
            x = torch.dropout(x, dropout, train)
    return x.transpose(0, 1) if batch_first else x, last


def _of_layers(parameters: Sequence[Tensor], has_biases: bool, number: int) -> list[list[Tensor | None]]:
    size = len(parameters) // number
    gradients: list[list[Tensor | None]] = []
    for at in range(0, len(parameters), size):
        each: list[Tensor | None] = list(parameters[at : at + size])
        biases = each[2:4] if has_biases else [None, None]
        gradients.append([*each[:2], *biases, each[-1] if size % 2 else None])
    return gradients


def _define(name: str, cell: RecurrentCell) -> None:
    several = name == "lstm"

    def states(hx: Any) -> list[State]:
        return list(zip(*hx, strict=True)) if several else [(each,) for each in hx]

    def result(x: Tensor, last: list[State]) -> tuple[Tensor, ...]:
        return x, *(torch.stack(parts) for parts in zip(*last, strict=True))

    @replace(f"{name}.input")
    def on_input(input: Tensor, hx: Any, params: Sequence[Tensor], *how: Any, slices: int) -> tuple[Tensor, ...]:
        counts[f"{name}.input"] += 1
        return result(*layers(cell, input, states(hx), params, None, *how, slices=slices))

    @replace(f"{name}.data")
    def on_data(
        data: Tensor, batch_sizes: Tensor, hx: Any, params: Sequence[Tensor], *how: Any, slices: int
    ) -> tuple[Tensor, ...]:
        counts[f"{name}.data"] += 1
        sizes = tuple(batch_sizes.tolist())
        return result(*layers(cell, data, states(hx), params, sizes, *how, slices=slices))

    @replace(f"{name}_cell")
    def of_cell(
        input: Tensor,
        hx: Any,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
        *,
        slices: int,
    ) -> Any:
        counts[f"{name}_cell"] += 1
        _, state = layer(cell, input, tuple(hx) if several else (hx,), (w_ih, w_hh, b_ih, b_hh, None), ONCE, slices)
        return state if several else state[0]


ONCE = PackedTimes(None, 1, False)
for _name, _cell in CELLS.items():
    _define(_name, _cell)
