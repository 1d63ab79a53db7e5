"""Certificates for tests: an authority, what it signed, and what nobody signed."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM files. `ca` signed `rightful` (for 127.0.0.1) and `other_host`; `thief` signed itself."""

    ca: Path
    rightful: Path
    other_host: Path
    thief: Path

    def server(self, name: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(getattr(self, name))
        return context


def make_certificates(folder: Path) -> Certificates:
    authority = ec.generate_private_key(ec.SECP256R1())
    own = _name("authority")
    (folder / "ca.pem").write_bytes(_pem(_signed(own, own, authority, authority, ca=True)))
    for name, host, signer in (
        ("rightful", "127.0.0.1", authority), ("other_host", "127.0.0.2", authority), ("thief", "127.0.0.1", None)
    ):  # fmt: skip
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = own if signer else _name(name)
        made = _signed(_name(name), issuer, key, signer or key, host=host)
        (folder / f"{name}.pem").write_bytes(_pem(made) + _key(key))
    return Certificates(*(folder / f"{name}.pem" for name in ("ca", "rightful", "other_host", "thief")))


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _signed(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    signer: ec.EllipticCurvePrivateKey,
    *,
    host: str = "",
    ca: bool = False,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=2))
    made = made.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    if host:
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))])
        made = made.add_extension(names, critical=False)
    return made.sign(signer, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: ec.EllipticCurvePrivateKey) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())
