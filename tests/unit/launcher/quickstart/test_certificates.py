"""The certificate of a machine: made once, for its address, and again before it ends."""

from __future__ import annotations

import getpass
import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509

from launcher.quickstart import certificates
from launcher.quickstart.machine import Machine, Ports


def machine(folder: Path, address: str = "127.0.0.1") -> Machine:
    return Machine(folder, folder, getpass.getuser(), address, Ports())


def read(folder: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((folder / name).read_bytes())


def test_made_once(tmp_path: Path) -> None:
    assert sorted(certificates.make(machine(tmp_path))) == sorted(certificates.NAMES)
    first = {name: (tmp_path / name).read_bytes() for name in certificates.NAMES}
    assert certificates.make(machine(tmp_path)) == []
    assert first == {name: (tmp_path / name).read_bytes() for name in certificates.NAMES}
    key = tmp_path / certificates.AUTHORITY_KEY
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    authority = read(tmp_path, certificates.AUTHORITY)
    read(tmp_path, certificates.CERTIFICATE).verify_directly_issued_by(authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / certificates.CERTIFICATE, tmp_path / certificates.KEY)


def test_another_address_has_another_certificate_of_the_same_authority(tmp_path: Path) -> None:
    certificates.make(machine(tmp_path))
    authority = (tmp_path / certificates.AUTHORITY).read_bytes()
    made = certificates.make(machine(tmp_path, "cloud.localhost"))
    assert sorted(made) == sorted([certificates.KEY, certificates.CERTIFICATE])
    assert (tmp_path / certificates.AUTHORITY).read_bytes() == authority


@pytest.mark.parametrize(
    ("days", "renewed"), [("_DAYS", 2), ("_AUTHORITY_DAYS", 4)], ids=["its own", "the authority"]
)
def test_what_ends_soon_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: str, renewed: int
) -> None:
    with monkeypatch.context() as short:
        short.setattr(certificates, days, 59)
        certificates.make(machine(tmp_path))
    assert len(certificates.make(machine(tmp_path))) == renewed
    assert certificates.make(machine(tmp_path)) == []
