"""Bundles of Sigstore: signed by an identity, such as an e-mail address or a workflow, and listed in a public log.

Whoever shows an OpenID Connect issuer who he is gets a certificate of a few minutes, and keeps no key. To sign takes a network. To
verify takes none: the bundle holds the certificate and the log's proof, and the library has the keys of both.
"""

import json
import logging
import os
import sys
from pathlib import Path
from typing import Any

from repro.errors import ReproError, UsageError
from repro.files import read
from repro.receipt.signing import OTHER_SIGNER, PAYLOAD_TYPE, UNREADABLE, Signed, Trusted, one_line

KIND = "Sigstore"
TOKEN = "SIGSTORE_IDENTITY_TOKEN"
"""The variable that holds a token of OpenID Connect, as for Sigstore's own command."""
MISSING = "receipt: {name} is not installed; install repro with its extra: pip install 'repro-bits[sigstore]'"
NO_IDENTITY = f"sign at a terminal, where a browser asks who you are, in CI that says it, or with a token in {TOKEN}"
OTHERWISE = "or sign with an SSH key, without --sigstore"
ISSUER = "1.3.6.1.4.1.57264.1.1"
"""The extension of a certificate that names who vouched: https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md."""


def is_bundle(content: Any) -> bool:
    """True for the JSON of a bundle, of any version."""
    kind = content.get("mediaType") if isinstance(content, dict) else None
    return isinstance(kind, str) and "sigstore.bundle" in kind


def sign(payload: bytes, trust_config: Path | None) -> dict[str, Any]:
    """A bundle of a statement, signed by the identity of this user or workflow.

    UsageError where there is none, ReproError where a server of Sigstore is not reached or refuses.
    """
    _import()
    from sigstore.dsse import Statement
    from sigstore.models import ClientTrustConfig
    from sigstore.oidc import IdentityError
    from sigstore.sign import SigningContext

    try:
        config = _read(trust_config) if trust_config else ClientTrustConfig.production()
        with SigningContext.from_trust_config(config).signer(_token(config)) as signer:
            return dict(json.loads(signer.sign_dsse(Statement(payload)).to_json()))
    except ReproError:
        raise
    except IdentityError as error:
        raise UsageError(f"receipt: no identity to sign with ({_why(error)}); {NO_IDENTITY}, {OTHERWISE}") from None
    except Exception as error:  # of any type: each of the library's clients has its own, beside those of requests
        raise ReproError(
            f"receipt: Sigstore did not sign ({_why(error)}); see that its servers can be reached, {OTHERWISE}"
        ) from None


def verify(path: Path, content: Any, trusted: Trusted) -> Signed:
    """The statement of a bundle, and the identity that signed it; no network is used.

    ReproError where signature, certificate and log do not fit, or the identity is not the trusted one.
    """
    _import()
    from sigstore.errors import VerificationError
    from sigstore.models import Bundle, ClientTrustConfig
    from sigstore.verify import Verifier
    from sigstore.verify.policy import Identity, UnsafeNoOp

    who, issuer = trusted.signer, trusted.issuer
    if who is not None and issuer is None:
        raise UsageError(
            f"receipt: {path} is signed by an identity; --signer {who} needs --issuer, the URL of who vouches for it"
        )
    config = _read(trusted.trust_config) if trusted.trust_config else ClientTrustConfig.production(offline=True)
    try:
        bundle = Bundle.from_json(json.dumps(content))
        kind, payload = Verifier(trusted_root=config.trusted_root).verify_dsse(bundle, UnsafeNoOp())  # who: below
        signer = _signer(bundle.signing_certificate)
    except Exception as error:  # of any type: a certificate may be anything
        raise ReproError(
            f"receipt: {path} cannot be believed ({_why(error)}): it was changed, or another Sigstore signed it (--trust-config), or a newer one (update the package sigstore)"
        ) from None
    if kind != PAYLOAD_TYPE:
        raise ReproError(UNREADABLE.format(path=path, why=f"its payload is {kind[:60]}"))
    try:
        if who is not None:
            Identity(identity=who, issuer=issuer).verify(bundle.signing_certificate)
    except VerificationError:
        raise ReproError(OTHER_SIGNER.format(path=path, signer=signer, known=f"{who}, {issuer}")) from None
    return Signed(payload, signer, KIND)


def _token(config: Any) -> Any:
    """A token that says who this is: from the variable, from CI, or asked for in a browser."""
    from sigstore.oidc import IdentityError, IdentityToken, Issuer, detect_credential

    given = os.environ.get(TOKEN) or detect_credential()
    if given:
        return IdentityToken(given)
    if not sys.stdin.isatty():
        raise IdentityError("nobody says who this is, and there is no terminal")
    return Issuer(config.signing_config.get_oidc_url()).identity_token()


def _signer(certificate: Any) -> str:
    """The identity that a certificate is for, and who vouched for it."""
    from cryptography.x509 import ObjectIdentifier, SubjectAlternativeName

    names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    issuer = certificate.extensions.get_extension_for_oid(ObjectIdentifier(ISSUER)).value.value.decode()
    return ", ".join([*(str(name.value) for name in names), issuer])


def _read(path: Path) -> Any:
    """The keys and servers of a Sigstore. UsageError where the file holds none."""
    from sigstore.models import ClientTrustConfig

    try:
        config = ClientTrustConfig.from_json(read(path).decode())
        _ = config.trusted_root, config.signing_config
        return config
    except OSError as error:
        raise UsageError(f"receipt: --trust-config {path} cannot be read ({error.strerror})") from None
    except Exception as error:  # of any type: the library checks its parts in turn
        raise UsageError(
            f"receipt: --trust-config {path} names no Sigstore ({_why(error)}); name a file of type ClientTrustConfig"
        ) from None


def _import() -> None:
    """Imports the library, and keeps its warnings to itself. ReproError where it is not installed."""
    try:
        import sigstore.sign
        import sigstore.verify  # noqa: F401
    except ImportError as error:
        raise ReproError(MISSING.format(name=error.name)) from None
    logging.getLogger("sigstore").setLevel(logging.ERROR)


def _why(error: BaseException) -> str:
    """The first words in a chain of errors: some of the library's have none of their own."""
    while not str(error) and error.__cause__:
        error = error.__cause__
    return one_line(error)
