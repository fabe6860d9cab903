"""Envelopes, signed with an SSH key: Dead Simple Signing Envelope (DSSE), version 1.

The id of a signature's key is the public key itself, as OpenSSH writes it, so that an envelope can be verified by itself. Whose key it
is, it cannot say: that is for those who hold the key of the signer in hand.
"""

import base64
import getpass
import hashlib
import json
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from repro.errors import ReproError, UsageError
from repro.files import read
from repro.text import printable

PAYLOAD_TYPE = "application/vnd.in-toto+json"
NAMES = ("id_ed25519", "id_ecdsa", "id_rsa")
"""The keys in ~/.ssh that are tried without --key, as OpenSSH calls them."""
MISSING = "receipt: {name} is not installed; install repro with its extra: pip install 'repro-bits[receipts]'"
MAKE_ONE = "make one with `ssh-keygen -t ed25519`, and name it with --key"
LARGEST = 16 << 20  # bytes of an envelope
UNREADABLE = "receipt: {path} is not a receipt: {why}; name a file that `repro receipt` wrote"
OTHER_SIGNER = "receipt: {path} is signed by {signer}, which {known} does not name; ask its maker for his receipt, or name him with --signer"


@dataclass(frozen=True)
class Trusted:
    """Whose receipts are believed; anybody's where no signer is named."""

    signer: str | None = None
    """A key, a file of keys, or an identity."""
    issuer: str | None = None
    """The URL of who vouches for the identity."""
    trust_config: Path | None = None
    """The keys and servers of a Sigstore that is not the public one."""


@dataclass(frozen=True)
class Signed:
    """What is signed, and by whom."""

    payload: bytes
    signer: str
    """The fingerprint of a key, or an identity."""
    kind: str
    """The kind of the key, or of the signature."""


def sign(payload: bytes, key: Path | None) -> dict[str, Any]:
    """An envelope of a statement. UsageError where there is no such key, or it is of a kind that cannot be read."""
    dsse, signer = _library()
    path = key or _own()
    private = _private(path)
    public = _text(private.public_key())
    own = signer.SSlibKey.from_crypto(private.public_key(), keyid=public)
    envelope = dsse.Envelope(payload, PAYLOAD_TYPE, {})
    envelope.sign(signer.CryptoSigner(private, own))
    return dict(envelope.to_dict())


def load(path: Path) -> Any:
    """The JSON of a receipt. UsageError where there is no such file, ReproError where it is not JSON."""
    try:
        return json.loads(read(path, LARGEST))
    except FileNotFoundError:
        raise UsageError(f"receipt: {path} does not exist; name a file that `repro receipt` wrote") from None
    except OSError as error:
        raise ReproError(f"receipt: {path} cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise ReproError(UNREADABLE.format(path=path, why=one_line(error))) from None


def verify(path: Path, content: Any, trusted: Trusted) -> Signed:
    """The payload of an envelope, and the key that has signed it.

    ReproError where it is none, has another number of signatures than one, a signature that is not of its payload, or another
    signer than the trusted one.
    """
    dsse, signer = _library()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key
    from securesystemslib.exceptions import Error

    if trusted.issuer is not None or trusted.trust_config is not None:
        option = "--issuer" if trusted.issuer is not None else "--trust-config"
        raise UsageError(f"receipt: {path} is signed by an SSH key; {option} goes with one that Sigstore signed")
    try:
        envelope = dsse.Envelope.from_dict(content)
        ids = list(envelope.signatures)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Error) as error:
        raise ReproError(UNREADABLE.format(path=path, why=one_line(error))) from None
    if envelope.payload_type != PAYLOAD_TYPE:
        raise ReproError(
            UNREADABLE.format(path=path, why=f"its payload is {printable(str(envelope.payload_type))[:60]}")
        )
    if len(ids) != 1:
        raise ReproError(f"receipt: {path} has {len(ids)} signatures, and a receipt has one; ask its maker for his own")
    try:
        key = signer.SSlibKey.from_crypto(load_ssh_public_key(ids[0].encode()), keyid=ids[0])
        envelope.verify([key], 1)
    except (ValueError, UnsupportedAlgorithm, Error) as error:
        raise ReproError(
            f"receipt: {path}: its signature is not that of its content ({one_line(error)}): one of the two was changed; ask its maker for it again"
        ) from None
    own = fingerprint(ids[0])
    if trusted.signer is not None and own not in known(trusted.signer):
        raise ReproError(OTHER_SIGNER.format(path=path, signer=own, known=trusted.signer))
    return Signed(envelope.payload, own, ids[0].split()[0])


def fingerprint(key: str) -> str:
    """The fingerprint of a public key, as `ssh-keygen -l` prints it."""
    blob = base64.b64decode(key.split()[1])
    return f"SHA256:{base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip('=')}"


def known(signer: str) -> set[str]:
    """The fingerprints that --signer names: one as text, or those of the keys in a file.

    A file may be a public key, or one of those of OpenSSH: allowed_signers, authorized_keys. UsageError where it names none.
    """
    if signer.startswith("SHA256:"):
        return {signer}
    try:
        lines = read(Path(signer)).decode(errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"receipt: --signer {signer} cannot be read ({error.strerror}); name a public key") from None
    words = [line.split() for line in lines if not line.lstrip().startswith("#")]
    named = [(kind, blob) for line in words for kind, blob in pairwise(line) if _is_kind(kind)]
    try:
        result = {fingerprint(f"{kind} {blob}") for kind, blob in named}
    except ValueError:
        result = set()
    if not result:
        raise UsageError(
            f"receipt: --signer {signer} holds no public key of OpenSSH; name a file such as id_ed25519.pub"
        )
    return result


def own_fingerprint(key: Path | None = None) -> str | None:
    """The fingerprint of this user's own key, by its public half; None where there is none."""
    names = [key] if key else [Path.home() / ".ssh" / name for name in NAMES]
    for path in names:
        public = path.with_name(f"{path.name}.pub")
        try:
            return fingerprint(read(public).decode())
        except (OSError, ValueError, IndexError):
            continue
    return None


def _is_kind(word: str) -> bool:
    return word.startswith(("ssh-", "ecdsa-", "sk-"))


def _own() -> Path:
    path = next((path for name in NAMES if (path := Path.home() / ".ssh" / name).is_file()), None)
    if path is None:
        raise UsageError(f"receipt: there is no SSH key in {Path.home() / '.ssh'} to sign with; {MAKE_ONE}")
    return path


def _private(path: Path) -> Any:
    """The private key of a file; a passphrase is asked for at the terminal."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    try:
        content = read(path)
        try:
            return load_ssh_private_key(content, None)
        except TypeError:
            if not sys.stdin.isatty():
                raise UsageError(
                    f"receipt: --key {path} has a passphrase; sign at a terminal, where it is asked for"
                ) from None
            passphrase = getpass.getpass(f"passphrase of {path}: ").encode()
        return load_ssh_private_key(content, passphrase)
    except OSError as error:
        raise UsageError(f"receipt: --key {path} cannot be read ({error.strerror}); {MAKE_ONE}") from None
    except (TypeError, ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(
            f"receipt: --key {path} cannot be used to sign ({one_line(error)}): it is no private key of OpenSSH, or the passphrase is another one; {MAKE_ONE}"
        ) from None


def _text(public: Any) -> str:
    """A public key as OpenSSH writes it, without a comment."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    text: bytes = public.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return text.decode()


def _library() -> tuple[Any, Any]:
    """securesystemslib's envelopes and keys. ReproError where they are not installed."""
    try:
        import cryptography  # noqa: F401
        from securesystemslib import dsse, signer
    except ImportError as error:
        raise ReproError(MISSING.format(name=error.name)) from None
    return dsse, signer


def one_line(error: BaseException) -> str:
    """The message of an error, short enough to stand within another."""
    return str(printable(" ".join(str(error).split()) or type(error).__name__))[:120]
