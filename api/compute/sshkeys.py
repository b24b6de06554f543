"""Key pairs: fingerprints in Nova's form, and key generation for older microversions."""

from __future__ import annotations

import base64
import binascii
import datetime
import hashlib

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from common import clock
from common.errors import Invalid

SSH = "ssh"
X509 = "x509"

_BITS = 3072
_CERTIFICATE_DAYS = 3650
#: Microsoft's user principal name, by which Windows finds the user of a certificate
_UPN = ObjectIdentifier("1.3.6.1.4.1.311.20.2.3")


def fingerprint(kind: str, public_key: str) -> str:
    """Return the fingerprint that clients show: MD5 of an SSH key, SHA-1 of a certificate.

    Raises Invalid unless it is a key.
    """
    return _colons(_ssh(public_key) if kind == SSH else _certificate(public_key))


def _ssh(public_key: str) -> bytes:
    try:
        serialization.load_ssh_public_key(public_key.encode())
        blob = base64.b64decode(public_key.split()[1])
    except (ValueError, IndexError, UnsupportedAlgorithm, binascii.Error) as error:
        raise Invalid("Keypair data is invalid: failed to generate fingerprint") from error
    return hashlib.md5(blob, usedforsecurity=False).digest()


def _certificate(pem: str) -> bytes:
    try:
        certificate = x509.load_pem_x509_certificate(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Invalid("Keypair data is invalid: failed to generate X509 fingerprint") from error
    return certificate.fingerprint(hashes.SHA1())  # noqa: S303 - an identifier


def _colons(digest: bytes) -> str:
    return digest.hex(":")


def generate(kind: str, user_id: str) -> tuple[str, str]:
    """Generate an RSA key: (private key as PEM, public key or certificate). Nothing is stored."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=_BITS)
    if kind == X509:
        return _pem(key, serialization.PrivateFormat.PKCS8), _self_signed(key, user_id)
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    private = _pem(key, serialization.PrivateFormat.TraditionalOpenSSL)
    return private, f"{public.decode()} Generated-by-micronova"


def _pem(key: rsa.RSAPrivateKey, form: serialization.PrivateFormat) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, form, serialization.NoEncryption()
    ).decode()


def _self_signed(key: rsa.RSAPrivateKey, user_id: str) -> str:
    """Return a certificate for logging in to Windows without a password (WinRM)."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user_id[:64])])
    principal = f"{user_id}@localhost".encode()
    if len(principal) > 127:
        raise Invalid("Keypair data is invalid: the user ID is too long for a certificate")
    now = clock.utcnow()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=_CERTIFICATE_DAYS))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(
            # DER of a UTF8String: tag 12, length, text.
            x509.SubjectAlternativeName(
                [x509.OtherName(_UPN, bytes([12, len(principal)]) + principal)]
            ),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
