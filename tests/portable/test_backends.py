"""Backends have the methods that xp.py declares."""

import ast
import inspect
from pathlib import Path

import pytest

from repro.portable.backends import xla
from repro.portable.definitions import defaults, xp

FOLDER = Path(xla.__file__).parent
Parameters = list[str]


def declared(protocol: type) -> dict[str, Parameters]:
    """The methods of a protocol with their parameters; no names where they are by position alone."""
    results = {}
    for name, method in vars(protocol).items():
        if inspect.isfunction(method) and not name.startswith("_"):
            _, *parameters = inspect.signature(method).parameters.values()
            positional = any(each.kind is each.POSITIONAL_ONLY for each in parameters)
            results[name] = [] if positional else [each.name for each in parameters]
    return results


def defined(path: Path) -> dict[str, Parameters]:
    """The methods of the one class of a file, which no test can import; no names where another function is one."""
    (backend,) = (node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef))
    results: dict[str, Parameters] = {}
    for node in backend.body:
        if isinstance(node, ast.FunctionDef):
            static = [getattr(decorator, "id", "") for decorator in node.decorator_list] == ["staticmethod"]
            results[node.name] = parameters(node)[not static :]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            results |= {name.id: [] for name in ast.walk(target) if isinstance(name, ast.Name)}
    return results


def parameters(function: ast.FunctionDef) -> Parameters:
    args = function.args
    return [each.arg for each in (*args.args, *filter(None, [args.vararg]))]


BACKEND = declared(xp.Backend)
XLA = BACKEND | declared(xp.XlaBackend)
DEFAULTS = defined(Path(defaults.__file__))


PROTOCOLS = {"numpy": BACKEND, "pytorch": BACKEND, "tensorflow": XLA, "jax": XLA}


@pytest.mark.parametrize(("framework", "protocol"), PROTOCOLS.items())
def test_backend_has_the_declared_methods_in_order(framework: str, protocol: dict[str, Parameters]) -> None:
    own = defined(FOLDER / f"{framework}.py")
    assert [name for name in own if name in protocol] == [name for name in protocol if name in own]
    result = DEFAULTS | own
    assert set(protocol) <= set(result)
    named = [name for name in protocol if result[name] and protocol[name]]
    assert {name: result[name] for name in named} == {name: protocol[name] for name in named}
    assert len(named) > 20


def test_defaults_are_declared_in_this_order() -> None:
    methods = [name for name, parameters in DEFAULTS.items() if parameters]
    assert methods == [name for name in BACKEND if name in methods]


def test_functions_of_xla_have_the_declared_parameters() -> None:
    functions = [node for node in ast.parse(Path(xla.__file__).read_text()).body if isinstance(node, ast.FunctionDef)]
    assert {function.name: parameters(function)[1:] for function in functions} == {
        function.name: XLA[function.name] for function in functions
    }
