"""The command `receipt`: a signed statement about a record, and its check."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from repro.commands import command_options
from repro.commands.parser import Parser
from repro.errors import UsageError
from repro.text import counted, printable

if TYPE_CHECKING:
    from repro.receipt.receipt import Receipt

EPILOG = """A receipt is an in-toto statement (SLSA provenance) in a DSSE envelope, and shows who
signed what. It does not show that the data were chosen honestly, nor that nothing was
trained before. `repro audit` does parts of its training again."""


def parser() -> Parser:
    made = Parser(
        "receipt",
        "sign a record, so that others can check it; or check a receipt",
        ("repro receipt [OPTIONS] RECORD", "repro receipt --check RECEIPT [--signer WHO] [RECORD]"),
        run,
        epilog=EPILOG,
    )
    made.add_argument("record", nargs="?", type=Path, metavar="RECORD", help="folder that `repro record` made")
    made.add_argument(
        "--to",
        type=Path,
        metavar="FILE",
        help="file for the receipt (default: RECORD/receipt.json, or RECORD/receipt.sigstore.json)",
    )
    key = "private SSH key to sign with (default: ~/.ssh/id_ed25519, id_ecdsa or id_rsa)"
    made.add_argument("--key", type=Path, metavar="FILE", help=key)
    data = "file or folder of data, whose hashes the receipt holds (repeatable)"
    made.add_argument("--data", action="append", default=[], type=Path, metavar="PATH", help=data)
    sigstore = "sign with your identity by Sigstore, in place of a key; needs a network"
    made.add_argument("--sigstore", action="store_true", help=sigstore)
    statement = "write the statement without a signature, for another signer"
    made.add_argument("--statement", action="store_true", help=statement)
    check = "check a receipt's signature, and a record against it"
    made.add_argument("--check", type=Path, metavar="RECEIPT", help=check)
    command_options.add_signer(made, "with --check: ")
    return made


def run(options: argparse.Namespace) -> int:
    """Signs, or checks. ReproError where a receipt cannot be believed."""
    if options.check is not None:
        return _check(options)
    if options.record is None:
        raise UsageError("receipt: no record; name the folder that `repro record` made")
    _check_options(options)
    from repro.files import current_folder, write_atomically
    from repro.receipt import bundles, receipt, signing
    from repro.record import record as records

    record = records.read(options.record)
    payload = receipt.make(record, options.data, current_folder())
    name = "statement.json" if options.statement else receipt.BUNDLE if options.sigstore else receipt.FILE
    path = options.to or options.record / name
    if path.exists():
        raise UsageError(f"receipt: {path} already exists; name another file with --to")
    if options.statement:
        write_atomically(path, payload)
        print(printable(f"statement in {path}, not signed"))
        return 0
    sigstore, config = options.sigstore, options.trust_config
    envelope = bundles.sign(payload, config) if sigstore else signing.sign(payload, options.key)
    made = receipt.write(path, envelope, signing.Trusted(trust_config=config))
    _show(made)
    print(printable(f"receipt in {path}, {path.stat().st_size} bytes"))
    return 0


def _check_options(options: argparse.Namespace) -> None:
    """Raises UsageError for options that do not go together where a record is signed."""
    if options.signer is not None or options.issuer is not None:
        raise UsageError(
            "receipt: --signer and --issuer go with --check; to sign with a key of yours, name it with --key"
        )
    if options.sigstore and (options.key or options.statement):
        raise UsageError(f"receipt: --sigstore does not go with {'--key' if options.key else '--statement'}")
    if options.trust_config and not options.sigstore:
        raise UsageError("receipt: --trust-config goes with --sigstore, or with --check")


def _check(options: argparse.Namespace) -> int:
    from repro.receipt import receipt

    given = {
        "--key": options.key,
        "--data": options.data,
        "--to": options.to,
        "--statement": options.statement,
        "--sigstore": options.sigstore,
    }
    for name, value in given.items():
        if value:
            raise UsageError(f"receipt: {name} does not go with --check")
    checked = receipt.read(options.check, command_options.trusted(options))
    if options.record is not None:
        receipt.check_record(checked, options.record)
    _show(checked)
    if options.record is not None:
        print(printable(f"record      {options.record} is what was signed, with every step and checkpoint"))
    if options.signer is None:
        print("The signature fits. Whose it is, --signer checks.")
    return 0


def _show(receipt: "Receipt") -> None:
    """What a receipt says, a line for each thing."""
    for name, text in described(receipt).items():
        print(printable(f"{name:<12}{text}"), flush=True)


def described(receipt: "Receipt") -> dict[str, str]:
    """What a receipt says, by a word for each thing."""
    import shlex

    parameters = receipt.parameters
    numerics = parameters["numerics"]
    named = (
        numerics
        if isinstance(numerics, str)
        else "portable, " + ", ".join(f"{k} {v}" for k, v in numerics.items() if v)
    )
    versions = [
        one["uri"].partition("/")[2] for one in receipt.dependencies if str(one.get("uri", "")).startswith("pkg:")
    ]
    after = receipt.checkpoints
    steps = receipt.steps
    lines = {
        "signed by": f"{receipt.signer} ({receipt.signed.kind})",
        "command": shlex.join(parameters["command"]),
        "numerics": named,
        "versions": ", ".join(versions),
        "weights": receipt.fingerprint,
        "steps": f"{steps['annotations'].get('last')}, root of their tree {steps['digest']['sha256'][:16]}…",
        "checkpoints": f"{len(after)}: after steps {', '.join(map(str, after[:8]))}{', …' if len(after) > 8 else ''}"
        if after
        else "none",
    }
    if receipt.files:
        lines["outputs"] = counted(len(receipt.files), "file")
    if receipt.data:
        lines["data"] = counted(len(receipt.data), "file")
    return lines
