"""Operations of PyTorch that have no float64 form, computed by others that have one: fused attention, the LSTM of a CPU.

Their backward passes are gradients of these others. They are computed in a thread of their own: where a dispatch mode
calls, PyTorch records no graph.
"""

import threading
from collections.abc import Callable
from typing import Any, Optional

Given = dict[str, Any]  # the arguments by their names, in float64
Function = Callable[..., list[Any]]

ATTENTION = ("flash", "efficient", "cudnn")
LSTM = 2  # a mode of mkldnn_rnn_layer


def results(torch: Any, name: str, given: Given) -> Optional[list[Any]]:
    """What an operation of this name returns in float64, None in the place of what is not known; None of any other operation."""
    backward = name.endswith("_backward")
    forward = name[: -len("_backward")] if backward else name
    if forward in {f"_scaled_dot_product_{kind}_attention" for kind in ATTENTION}:
        function, inputs, gradients = _attention(torch, given)
    elif forward == "mkldnn_rnn_layer" and given["mode"] == LSTM:
        function, inputs, gradients = _lstm(torch, given)
    else:
        return None
    return _in_thread(lambda: _gradients(torch, function, inputs, gradients)) if backward else function(*inputs)


def _attention(torch: Any, given: Given) -> tuple[Function, list[Any], list[Any]]:
    def function(query: Any, key: Any, value: Any, bias: Any) -> list[Any]:
        math = torch.ops.aten._scaled_dot_product_attention_math
        return [math(query, key, value, bias, 0.0, given.get("is_causal", False), scale=given.get("scale"))[0]]

    inputs = [given["query"], given["key"], given["value"], given.get("attn_bias")]
    return function, inputs, [given.get("grad_out", given.get("grad_out_"))]


def _lstm(torch: Any, given: Given) -> tuple[Function, list[Any], list[Any]]:
    def function(data: Any, *rest: Any) -> list[Any]:
        *weights, hidden, cell = rest
        data = data.flip(0) if given["reverse"] else data
        start = [hidden.unsqueeze(0), cell.unsqueeze(0)]
        output, *last = torch.ops.aten.lstm.input(data, start, weights, True, 1, 0.0, False, False, False)
        return [output.flip(0) if given["reverse"] else output, *(one.squeeze(0) for one in last)]

    names = [name for name in given if name.startswith("weight")]
    inputs = [given["input"], *(given[name] for name in names), given["hx_"], given.get("cx_", given.get("cx_tmp"))]
    return function, inputs, [given.get(name) for name in ("grad_output", "grad_hy", "grad_cy")]


def _gradients(torch: Any, function: Function, inputs: list[Any], gradients: list[Any]) -> list[Any]:
    """The gradient of each input, None for those that are None."""
    with torch.enable_grad():
        leaves = [None if one is None else one.detach().requires_grad_() for one in inputs]
        pairs = [pair for pair in zip(function(*leaves), gradients) if pair[1] is not None]
        wanted = [one for one in leaves if one is not None]
        made = iter(torch.autograd.grad([one for one, _ in pairs], wanted, [one for _, one in pairs]))
    return [None if one is None else next(made) for one in leaves]


def _in_thread(compute: Callable[[], list[Any]]) -> list[Any]:
    computed: list[list[Any]] = []
    thread = threading.Thread(target=lambda: computed.append(compute()))
    thread.start()
    thread.join()
    return computed[0]
