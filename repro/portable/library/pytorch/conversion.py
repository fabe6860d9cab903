"""Conversion of a model of PyTorch's modules."""

import copy

import torch
from torch import nn
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear

from repro.errors import UsageError
from repro.portable.arguments import kind, refuse
from repro.portable.library.pytorch import modules
from repro.portable.library.pytorch.calls import is_watching, watch_calls

TWINS: dict[type, type] = {
    own: twin
    for twin in vars(modules).values()
    if isinstance(twin, type) and issubclass(twin, modules.Portable)
    for own in [getattr(nn, twin.__name__, None)]
    if own is not None
} | {NonDynamicallyQuantizableLinear: modules.Linear}  # of MultiheadAttention
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
KEPT = (nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.Identity, nn.Flatten, nn.Unflatten, nn.ZeroPad2d)
"""PyTorch's modules that compute nothing."""


def convert(model: nn.Module, seed: int = 0) -> nn.Module:
    """A portable twin: a deep copy whose modules of torch.nn are those of repro.portable.pytorch, with their weights.

    The mode, what needs a gradient, and what is shared stay. So do the keys of the state_dict, but that each dropout
    adds its count, `step`; the model's own state_dict can be loaded. Dropouts draw from streams of the seed.

    Containers of your own stay, too, as long as they have no parameters of their own. Additions, relu and changes of
    shape have the same bits everywhere, but products, means, softmax and other functions of PyTorch do not: call those
    of repro.portable.library.pytorch.functional. The first call in training and the first one in evaluation see what a
    container calls in its forward, and end with a UsageError that lists what has no portable form. A module that
    derives from modules.Portable is trusted.

    UsageError that lists the modules that have no portable form.
    """
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_complex() or (tensor.is_floating_point() and tensor.dtype != torch.float32):
            raise UsageError(
                f"portable numerics: {name} is {kind(tensor)}; convert the model to float32, with model.float()"
            )
        if tensor._backward_hooks or tensor._post_accumulate_grad_hooks:
            raise refuse("convert", f"{name} has hooks, which its copy would not have; give them to the portable model")
    twin = copy.deepcopy(model)
    obstacles = [
        f"{name or 'the model'} ({reason})" for name, each in twin.named_modules() if (reason := _obstacle(each))
    ]
    if obstacles:
        raise UsageError(
            f"portable numerics: no portable form of {', '.join(obstacles)}; replace them, or derive a module that calls "
            "none but portable functions from repro.portable.pytorch.Portable"
        )
    modules.number_dropouts(twin, seed)
    for each in twin.modules():
        if not isinstance(each, modules.Portable) and type(each) not in KEPT:
            watch_calls(each)
    first = next(twin.parameters(), None)
    return twin if first is None else twin.to(first.device)


def _obstacle(module: nn.Module) -> str | None:
    """Makes a module of PyTorch's a portable one, or says what it is that cannot be made one."""
    own = type(module)
    if "forward" in vars(module):
        return f"{own.__name__} with a forward of the instance's own"
    if any(not is_watching(hook) for hooks in HOOKS for hook in getattr(module, hooks).values()):
        return f"{own.__name__} with hooks"
    if own in TWINS:
        module.__class__ = TWINS[own]  # the same attributes, another forward
    if isinstance(module, modules.Portable):
        option = module.obstacle()
        return option and f"{own.__name__} with {option[0]}"
    if own in KEPT:
        return None
    if own.__module__.partition(".")[0] == "torch" or isinstance(module, tuple(TWINS)):
        return own.__name__
    if any(isinstance(module, kept) and nn.Module.forward is not kept.forward is not own.forward for kept in KEPT):
        return f"{own.__name__} with a forward of its own"
    if any(parameter is not None for parameter in module._parameters.values()):
        return f"{own.__name__} with parameters of its own"
    return None
