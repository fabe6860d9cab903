"""PyTorch's compilers, which leave programs to its operations.

A function of torch.compile runs eagerly, whenever it was compiled; torch.jit's runs without fused kernels. Packages of
compiled kernels are refused. Tracers (torch.export, torch.fx, FakeTensorMode) compute nothing and stay as they are.
"""

import sys
from contextlib import ExitStack
from types import ModuleType
from typing import Any

import torch

from repro.inject.imports import Finder
from repro.portable.modes.pytorch.dispatcher.refusal import refuse

COMPILER = "torch._dynamo.eval_frame"
NOTE = "portable numerics: torch.compile runs eagerly, as kernels that it makes have no portable form"
PACKAGES = ("AOTIModelPackageLoader", "AOTIModelContainerRunnerCpu", "AOTIModelContainerRunnerCuda")

_noted = False


def install(undo: ExitStack) -> None:
    """Switches compilers off until `undo` is closed."""
    if COMPILER in sys.modules:
        _eager(sys.modules[COMPILER], undo)
    else:
        finder = Finder()  # to import it takes seconds, in vain for most
        finder.when_imported(COMPILER, lambda module: _eager(module, undo))
        sys.meta_path.insert(0, finder)
        undo.callback(sys.meta_path.remove, finder)
    undo.callback(torch._C._jit_set_texpr_fuser_enabled, torch._C._jit_texpr_fuser_enabled())
    torch._C._jit_set_texpr_fuser_enabled(False)
    for name in PACKAGES:
        if hasattr(torch._C._aoti, name):
            replace(undo, torch._C._aoti, name, _Package)


def one_form_of_optimizers(undo: ExitStack) -> None:
    """Steps of optimizers tensor by tensor by default, as on a CPU: on a GPU PyTorch chooses lists of tensors.

    Some have another order of operations there, NAdam and RMSprop for two.
    """
    name = "_default_to_fused_or_foreach"
    for module in [each for path, each in sys.modules.items() if path.startswith("torch.optim.")]:
        if hasattr(module, name):
            replace(undo, module, name, lambda *_, **__: (False, False))


def replace(undo: ExitStack, owner: Any, name: str, new: Any) -> None:
    """Sets an attribute, until `undo` is closed."""
    undo.callback(setattr, owner, name, getattr(owner, name))
    setattr(owner, name, new)


def _eager(module: ModuleType, undo: ExitStack) -> None:
    """No function is handed to the compiler: what chooses between them is asked at each call of a compiled one."""
    chosen = module._callback_from_stance

    def none(callback: Any) -> Any:
        if callback in (None, False) or torch.compiler.is_exporting():
            return chosen(callback)
        note()
        return None

    replace(undo, module, "_callback_from_stance", none)
    replace(undo, module, "_stance", module.DynamoStance("force_eager"))  # or fullgraph=True misses its graph


def note() -> None:
    """One line on stderr, once for a process."""
    global _noted
    if not _noted:
        _noted = True
        print(NOTE, file=sys.stderr)


class _Package:
    """Stands for kernels that were compiled before."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise refuse("a package of AOTInductor", "its kernels were compiled before", "load the model itself")
