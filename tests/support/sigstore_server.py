"""A Sigstore of a test's own on loopback: an issuer of identities, a certificate authority (Fulcio) and a log (Rekor v1).

All keys are made anew. What it answers is what the real servers answer, so the library signs and verifies as it always does.
"""

import base64
import hashlib
import inspect
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from repro.receipt import bundles

WHO = "maker@example.com"
SINCE = {"start": "2026-01-01T00:00:00Z"}
USAGES = [*inspect.signature(x509.KeyUsage).parameters]
MEDIA = "application/vnd.dev.sigstore"
SUBJECT = {"organization": "test", "commonName": "test"}
CODE = "only-once"
OLDER = hashlib.sha256(b"\0the entry before").digest()
"""The first leaf of the log; that of a test is the second."""


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Key:
    """A key of a server."""

    def __init__(self) -> None:
        self.private = ec.generate_private_key(ec.SECP256R1())
        self.der = self.private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.id = hashlib.sha256(self.der).digest()

    def sign(self, data: bytes) -> bytes:
        return self.private.sign(data, ec.ECDSA(hashes.SHA256()))

    def trusted(self, url: str) -> dict[str, Any]:
        """A log with this key, as a trusted root has it."""
        known = {"rawBytes": _b64(self.der), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": SINCE}
        return {"baseUrl": url, "hashAlgorithm": "SHA2_256", "publicKey": known, "logId": {"keyId": _b64(self.id)}}


class Sigstore:
    """The keys, and what each server answers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.authority, self.certificates, self.log = Key(), Key(), Key()
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
        self.root = (
            self._builder(self.name, self.authority.private.public_key(), timedelta(days=9999), "key_cert_sign")
            .add_extension(x509.BasicConstraints(True, None), critical=True)
            .sign(self.authority.private, hashes.SHA256())
        )

    def config(self) -> str:
        """What a client trusts, and where the servers are: a ClientTrustConfig."""
        service = {"url": self.url, "majorApiVersion": 1, "validFor": SINCE, "operator": "test"}
        chain = {"certificates": [{"rawBytes": _b64(self.root.public_bytes(Encoding.DER))}]}
        authority = {"subject": SUBJECT, "uri": self.url, "certChain": chain, "validFor": SINCE}
        root = {
            "mediaType": f"{MEDIA}.trustedroot+json;version=0.1",
            "tlogs": [self.log.trusted(self.url)],
            "certificateAuthorities": [authority],
            "ctlogs": [self.certificates.trusted(self.url)],
            "timestampAuthorities": [],
        }
        servers: dict[str, Any] = {f"{name}Urls": [service] for name in ("ca", "oidc", "rekorTlog")} | {"tsaUrls": []}
        servers |= {f"{name}Config": {"selector": "ANY"} for name in ("rekorTlog", "tsa")}
        servers["mediaType"] = f"{MEDIA}.signingconfig.v0.2+json"
        kind = f"{MEDIA}.clienttrustconfig.v0.1+json"
        return json.dumps({"mediaType": kind, "trustedRoot": root, "signingConfig": servers})

    def token(self, who: str = WHO, minutes: int = 5) -> str:
        """What says who somebody is."""
        now = datetime.now(UTC)
        claims = {"iss": self.url, "aud": "sigstore", "sub": who, "iat": now, "exp": now + timedelta(minutes=minutes)}
        return jwt.encode(claims, "a secret of the issuer, never checked", algorithm="HS256")

    def get(self, path: str, query: dict[str, list[str]]) -> dict[str, Any] | str | None:
        """An issuer: what it knows, a page that sends the browser back at once, and the token that a CI gives."""
        if path == "/.well-known/openid-configuration":
            return {"authorization_endpoint": f"{self.url}/authorize", "token_endpoint": f"{self.url}/token"}
        if path == "/authorize":
            return f"{query['redirect_uri'][0]}?{urlencode({'code': CODE, 'state': query['state'][0]})}"
        return {"value": self.token("https://ci.example.com/train.yml")} if path == "/ci" else None

    def post(self, path: str, body: str, bearer: str) -> dict[str, Any] | None:
        if path == "/token":
            return {"access_token": self.token()} if parse_qs(body)["code"] == [CODE] else None
        sent = json.loads(body)
        if path == "/api/v2/signingCert":
            return self._certificate(sent["certificateSigningRequest"], bearer)
        return self._entry(sent["spec"]["proposedContent"]) if path == "/api/v1/log/entries" else None

    def _builder(self, subject: x509.Name, key: Any, valid: timedelta, usage: str) -> Any:
        now = datetime.now(UTC)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.authority.private.public_key())
        return (
            x509.CertificateBuilder(self.name, subject, key, x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + valid)
            .add_extension(x509.KeyUsage(**{name: name == usage for name in USAGES}), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(issuer, critical=False)
        )

    def _certificate(self, request: str, bearer: str) -> dict[str, Any]:
        """A certificate for who the token names, which holds that the log of certificates has it (RFC 6962)."""
        claims = jwt.decode(bearer, options={"verify_signature": False})
        key = x509.load_pem_x509_csr(base64.b64decode(request)).public_key()
        who = claims["sub"]
        san = x509.UniformResourceIdentifier(who) if who.startswith("https:") else x509.RFC822Name(who)
        issuer = _extension(bundles.ISSUER, claims["iss"].encode())
        builder = (
            self._builder(x509.Name([]), key, timedelta(minutes=10), "digital_signature")
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
            .add_extension(x509.SubjectAlternativeName([san]), critical=True)
            .add_extension(issuer, critical=False)
        )
        bare = builder.sign(self.authority.private, hashes.SHA256()).tbs_certificate_bytes
        time = int(datetime.now(UTC).timestamp() * 1000).to_bytes(8, "big")
        signed = b"\0\0" + time + b"\0\1" + self.authority.id + len(bare).to_bytes(3, "big") + bare + b"\0\0"
        signature = self.certificates.sign(signed)
        one = b"\0" + self.certificates.id + time + b"\0\0\4\3" + len(signature).to_bytes(2, "big") + signature
        listed = (len(one) + 2).to_bytes(2, "big") + len(one).to_bytes(2, "big") + one
        extension = _extension("1.3.6.1.4.1.11129.2.4.2", bytes([4, len(listed)]) + listed)
        whole = builder.add_extension(extension, critical=False).sign(self.authority.private, hashes.SHA256())
        chain = [one.public_bytes(Encoding.PEM).decode() for one in (whole, self.root)]
        return {"signedCertificateEmbeddedSct": {"chain": {"certificates": chain}}}

    def _entry(self, proposed: dict[str, Any]) -> dict[str, Any]:
        """An entry of the log, with the proof that it is in the tree and the promise that it stays."""
        envelope, (verifier,) = json.loads(proposed["envelope"]), proposed["verifiers"]
        spec = {
            "envelopeHash": _sha256(proposed["envelope"].encode()),
            "payloadHash": _sha256(base64.b64decode(envelope["payload"])),
            "signatures": [{"signature": one["sig"], "verifier": verifier} for one in envelope["signatures"]],
        }
        body = json.dumps({"apiVersion": "0.0.1", "kind": "dsse", "spec": spec}).encode()
        root = hashlib.sha256(b"\1" + OLDER + hashlib.sha256(b"\0" + body).digest()).digest()
        note = f"test - 1\n2\n{_b64(root)}\n"
        signed = f"{note}\n\N{EM DASH} test {_b64(self.log.id[:4] + self.log.sign(note.encode()))}\n"
        proof = {"logIndex": 1, "treeSize": 2, "rootHash": root.hex(), "hashes": [OLDER.hex()]}
        now = int(datetime.now(UTC).timestamp())
        entry = {"body": _b64(body), "integratedTime": now, "logID": self.log.id.hex(), "logIndex": 1}
        promise = self.log.sign(json.dumps(entry, sort_keys=True, separators=(",", ":")).encode())
        verified = {"inclusionProof": proof | {"checkpoint": signed}, "signedEntryTimestamp": _b64(promise)}
        return {"1": entry | {"verification": verified}}


def _sha256(data: bytes) -> dict[str, str]:
    return {"algorithm": "sha256", "value": hashlib.sha256(data).hexdigest()}


def _extension(name: str, value: bytes) -> x509.UnrecognizedExtension:
    return x509.UnrecognizedExtension(x509.ObjectIdentifier(name), value)


class Handler(BaseHTTPRequestHandler):
    """Answers over HTTP."""

    sigstore: Sigstore

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self._answer(self.sigstore.get(parts.path, parse_qs(parts.query)))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._answer(self.sigstore.post(self.path, body, self.headers.get("Authorization", "").removeprefix("Bearer ")))

    def _answer(self, content: dict[str, Any] | str | None) -> None:
        """Sends JSON; a text is where the browser goes on, None an error."""
        self.send_response(400 if content is None else 302 if isinstance(content, str) else 200)
        if isinstance(content, str):
            self.send_header("Location", content)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())


@contextmanager
def serving() -> Iterator[Sigstore]:
    """A Sigstore that answers on a port of its own."""

    class Own(Handler):
        pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Own) as server:
        Own.sigstore = Sigstore(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Own.sigstore
        finally:
            server.shutdown()
            thread.join()
