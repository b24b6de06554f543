"""The console proxy's certificate, by an authority of this machine's own."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from launcher.quickstart.machine import ROOT_MODE, SHARED_MODE, Machine

AUTHORITY, AUTHORITY_KEY = "quickstart-ca.pem", "quickstart-ca.key"
CERTIFICATE, KEY = "console.pem", "console.key"

NAMES = (AUTHORITY_KEY, AUTHORITY, KEY, CERTIFICATE)

_AUTHORITY_DAYS = 3650
_DAYS = 800
"""Browsers take none that is valid for longer than 825 days."""
_RENEWED_DAYS = 60


def make(machine: Machine) -> list[str]:
    """Make what is missing, made for another address, or ends soon; return the files' names."""
    written = []
    if not _is_fit(machine.folder / AUTHORITY, ""):
        written += _make_authority(machine)
    if written or not _is_fit(machine.folder / CERTIFICATE, machine.address):
        written += _make_certificate(machine)
    return written


def _is_fit(path: Path, address: str) -> bool:
    if not path.exists():
        return False
    found = x509.load_pem_x509_certificate(path.read_bytes())
    left = found.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
    if left < datetime.timedelta(days=_RENEWED_DAYS):
        return False
    return not address or _name(address) in _names(found)


def _names(found: x509.Certificate) -> list[x509.GeneralName]:
    return list(found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)


def _name(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _make_authority(machine: Machine) -> list[str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _subject("micronova on this machine")
    made = _begun(name, name, key.public_key(), _AUTHORITY_DAYS).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    machine.write(AUTHORITY_KEY, _text_of_key(key), ROOT_MODE)
    machine.write(AUTHORITY, _signed(made, key), SHARED_MODE)
    return [AUTHORITY_KEY, AUTHORITY]


def _make_certificate(machine: Machine) -> list[str]:
    loaded = serialization.load_pem_private_key(
        (machine.folder / AUTHORITY_KEY).read_bytes(), password=None
    )
    assert isinstance(loaded, ec.EllipticCurvePrivateKey)
    authority = x509.load_pem_x509_certificate((machine.folder / AUTHORITY).read_bytes())
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        _begun(_subject(machine.address), authority.subject, key.public_key(), _DAYS)
        .add_extension(x509.SubjectAlternativeName([_name(machine.address)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    )
    machine.write(KEY, _text_of_key(key), SHARED_MODE)
    machine.write(CERTIFICATE, _signed(made, loaded), SHARED_MODE)
    return [KEY, CERTIFICATE]


def _subject(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _signed(begun: x509.CertificateBuilder, issuer: ec.EllipticCurvePrivateKey) -> str:
    known = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key())
    made = begun.add_extension(known, critical=False).sign(issuer, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()


def _text_of_key(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
