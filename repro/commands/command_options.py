"""Options that `record` and `verify` share, and the command after `--` or of an MLCube's task."""

import argparse
import contextlib
import shlex
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from repro.commands.parser import Parser
from repro.errors import UsageError
from repro.text import printable

if TYPE_CHECKING:
    from repro.receipt.signing import Trusted
    from repro.record.injection import Portable

RECORDS = Path("repro-records")
PLATFORMS = ("docker", "singularity")
PRECISIONS = ("high", "highest")


def parser(command: str, summary: str, run: Callable[[argparse.Namespace], int], epilog: str, *usages: str) -> Parser:
    """The parser of a command that runs a command of one's own."""
    own = (
        f"repro {command} [OPTIONS] -- COMMAND...",
        f"repro {command} [OPTIONS] --mlcube=DIR --task=NAME [KEY=VALUE ...]",
    )
    made = Parser(command, summary, (*own, *usages), run, epilog=epilog)
    made.takes_command = True
    return made


def add_outputs(parser: Parser, default: str = "") -> None:
    """Options of what is recorded; `default`: the outputs where none is named."""
    files = f"output files to hash after the run (repeatable{default})"
    parser.add_argument("--output", action="append", default=[], metavar="GLOB", help=files)
    parser.add_argument(
        "--keep", action="store_true", help="store the arrays too, so that compare can say by how much they differ"
    )
    parser.add_argument("--every", type=int, default=1, metavar="N", help="hash every Nth step (default: 1)")


def add_portable(parser: Parser, switch: bool = True) -> None:
    """Options of portable numerics; `--portable` itself where they are not the command."""
    group = parser.add_argument_group("portable numerics") if switch else parser
    if switch:
        group.add_argument("--portable", action="store_true", help="run the command with portable numerics")
    allow = "use the framework's own OPERATION (repeatable)"
    group.add_argument("--allow", action="append", default=[], metavar="OPERATION", help=allow)
    precision = "high: 13-bit operands; highest: 26-bit operands, slower (default: high)"
    group.add_argument("--precision", choices=PRECISIONS, help=precision)
    elastic = "PyTorch: the same bits however a batch is split into micro-batches and DDP's ranks"
    group.add_argument("--elastic", action="store_true", help=elastic)


def portable(options: argparse.Namespace) -> "Portable | None":
    """The portable numerics that the options ask for, or None. UsageError for an option that needs --portable."""
    if not getattr(options, "portable", True):
        given = {"--allow": options.allow, "--precision": options.precision, "--elastic": options.elastic}
        for name, value in given.items():
            if value:
                _refuse(options, f"{name} goes with --portable")
        return None
    from repro.record.injection import OPERATION, Portable

    for name in options.allow:
        if not OPERATION.fullmatch(name):
            _refuse(options, f"--allow {name!r}: must be the name of an operation, such as linalg_svd")
    precision = options.precision or PRECISIONS[0]
    if options.elastic and precision != PRECISIONS[0]:
        _refuse(options, f"--elastic goes with --precision={PRECISIONS[0]}")
    return Portable(tuple(dict.fromkeys(options.allow)), precision, options.elastic)


def say(line: str) -> None:
    """Prints a line of our own, beside those of the command."""
    with contextlib.suppress(OSError):  # the terminal is gone, or the reader of a pipe
        print(printable(line), file=sys.stderr, flush=True)


def add_cube(parser: Parser, workspace: str = "", parameters: bool = True) -> None:
    """Options that name a task of an MLCube, in the place of a command."""
    group = parser.add_argument_group("an MLCube task instead of a command")
    group.add_argument("--mlcube", type=Path, metavar="DIR", help="folder that holds mlcube.yaml")
    group.add_argument("--task", dest="cube_task", metavar="NAME", help="name of the task")
    group.add_argument("--platform", choices=PLATFORMS, help="container runtime of the MLCube (default: docker)")
    group.add_argument("--workspace", metavar="DIR", help=f"workspace of the MLCube (default: its own){workspace}")
    if parameters:
        group.add_argument("parameters", nargs="*", metavar="KEY=VALUE", help="parameters of the task")


def add_signer(parser: Parser, condition: str = "") -> None:
    """Options that say whose receipts are believed; `condition`: with which option they go."""
    signer = f"{condition}the signer's public key, a file of them, SHA256:..., or a Sigstore identity"
    parser.add_argument("--signer", metavar="WHO", help=signer)
    issuer = f"{condition}who vouches for a Sigstore identity, such as https://accounts.google.com"
    parser.add_argument("--issuer", metavar="URL", help=issuer)
    config = "keys and servers of another Sigstore than the public one"
    parser.add_argument("--trust-config", type=Path, metavar="FILE", help=config)


def trusted(options: argparse.Namespace) -> "Trusted":
    """Whose receipts are believed. UsageError for an option that needs another."""
    if options.issuer is not None and options.signer is None:
        _refuse(options, "--issuer goes with --signer, the identity that it vouches for")
    from repro.receipt.signing import Trusted

    return Trusted(options.signer, options.issuer, options.trust_config)


def check(options: argparse.Namespace) -> None:
    """Raises UsageError for options that do not go together."""
    if options.every < 1:
        _refuse(options, f"--every {options.every}: must be 1 or more")
    if options.mlcube is not None:
        if options.cube_task is None:
            _refuse(options, "--mlcube needs --task, one of the MLCube's")
        return
    given = {"--task": options.cube_task, "--platform": options.platform, "--workspace": options.workspace}
    for name, value in given.items():
        if value is not None:
            _refuse(options, f"{name} goes with --mlcube")
    if options.parameters:
        raise UsageError(f"{options.task}: unrecognized arguments: {shlex.join(options.parameters)}")
    if not options.command:
        example = f"repro {options.task} -- python train.py"
        raise UsageError(
            f"{options.task}: no command; put it after --, as in: {example} (or under [tool.repro] in pyproject.toml, as `command`)"
        )


def words(options: argparse.Namespace, command: list[str] | None = None, apart: bool = False) -> list[str]:
    """The words of the command, or of the MLCube's task; `command` stands in the place of what follows `--`.

    `apart`: what such a task puts out goes to a separate folder for each run. UsageError for a task or a parameter that
    the MLCube does not have.
    """
    after = command if command is not None else options.command or []
    if options.mlcube is None:
        return after
    from repro.containers import mlcube

    parameters = [*getattr(options, "parameters", []), *after]
    for parameter in parameters:
        if "=" not in parameter:
            raise UsageError(f"{options.task}: {parameter!r}: with --mlcube write KEY=VALUE, for a task's parameter")
    values = dict(parameter.split("=", 1) for parameter in parameters)
    cube = mlcube.read(options.mlcube, Path(options.workspace) if options.workspace else None)
    return mlcube.words(cube, options.cube_task, options.platform or "docker", values, apart)


def split(option: str, text: str, task: str = "verify") -> list[str]:
    """The words of a command given as one text. UsageError where a quote is open, or there is none."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{task}: {option} {text!r}: {error}") from None
    if not words:
        raise UsageError(f"{task}: {option} {text!r} is empty")
    return words


def fresh(prefix: str = "") -> Path:
    """A new folder for what is recorded now."""
    return RECORDS / f"{prefix}{datetime.now().strftime('%Y-%m-%d_%H-%M-%S-%f')}"


def _refuse(options: argparse.Namespace, message: str) -> NoReturn:
    raise UsageError(f"{options.task}: {message} (see repro {options.task} --help)")
