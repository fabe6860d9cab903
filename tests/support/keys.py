"""SSH keys for tests, in OpenSSH's format, as `ssh-keygen` makes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

KINDS: dict[str, Callable[[], Any]] = {
    "ed25519": ed25519.Ed25519PrivateKey.generate,
    "ecdsa": lambda: ec.generate_private_key(ec.SECP256R1()),
    "rsa": lambda: rsa.generate_private_key(65537, 3072),
}


def make(path: Path, kind: str = "ed25519", passphrase: str = "") -> None:
    """Writes a private key, and its public half beside it."""
    key = KINDS[kind]()
    secret = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, secret))
    path.chmod(0o600)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    path.with_name(f"{path.name}.pub").write_bytes(public + b" somebody@somewhere\n")
