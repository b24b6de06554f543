"""A self-made certificate, so that TLS can be used and verified."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID_DAYS = 3650


def server_context(directory: Path, *hosts: str) -> ssl.SSLContext:
    """Return a server's TLS context; clients are to trust `ca.pem` in the directory."""
    certificate, key = directory / "ca.pem", directory / "tls-key.pem"
    if not certificate.exists() or not key.exists():
        _create(certificate, key, hosts)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def _create(certificate: Path, key: Path, hosts: Sequence[str]) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    public = private.public_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Simulated Proxmox VE")])
    now = datetime.datetime.now(datetime.UTC)
    alternatives: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
    ]
    for host in hosts:
        try:
            alternatives.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            alternatives.append(x509.DNSName(host))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(list(dict.fromkeys(alternatives))), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        # Several authorities have the same name: clients know them by their keys.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(public), False)
        .sign(private, hashes.SHA256())
    )
    plain = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    descriptor = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(plain)
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
