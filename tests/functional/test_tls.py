"""TLS to RabbitMQ, PostgreSQL and memcached, configured as docs/deploy.md prints it."""

from __future__ import annotations

import configparser
import contextlib
import datetime
import gc
import ipaddress
import os
import pwd
import shutil
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from keystonemiddleware import auth_token
from kombu.exceptions import OperationalError
from pymemcache.exceptions import MemcacheError

from common import config, context, rpc
from common.errors import ConfigurationError, Unavailable
from common.rpc.messaging import oslo_messaging
from dashboard.sessions.memcached import MemcachedStore
from db import engine
from launcher import configuration
from launcher.doctor import bus as doctor
from placement.db.engine import Database
from tests.fixtures.deployment_page import TLS
from tests.functional import backends
from tests.functional.brokers import broker
from tests.pages import block
from web import auth

pytestmark = [
    pytest.mark.distributed,
    pytest.mark.timeout(2400),
    # Libraries leave sockets open whose handshake failed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Close what a test has left open before it ends."""
    yield
    gc.collect()


DAYS = datetime.timedelta(days=2)


@dataclass(frozen=True)
class Certificates:
    """Of an authority, another one, and of servers by it: one for 127.0.0.1, one for a name."""

    folder: Path

    @property
    def ca(self) -> str:
        return str(self.folder / "ca.pem")

    @property
    def other_ca(self) -> str:
        return str(self.folder / "other-ca.pem")

    def server(self, name: str = "here") -> tuple[str, str]:
        return str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key")


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _made(
    folder: Path, name: str, subject: str, by: Any, alternative: x509.GeneralName | None
) -> tuple[Any, x509.Name]:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    signer, issuer = by or (key, _name(subject))
    built = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAYS)
        .not_valid_after(now + DAYS)
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
    )
    if alternative is not None:
        built = built.add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
    file = folder / f"{name}.pem"
    file.write_bytes(built.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return key, _name(subject)


@pytest.fixture(scope="module")
def made() -> Iterator[Certificates]:
    with backends.private_folder() as folder:
        by = _made(folder, "ca", "an authority", None, None)
        _made(folder, "other-ca", "another authority", None, None)
        here = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        _made(folder, "here", "here", by, here)
        _made(folder, "elsewhere", "elsewhere", by, x509.DNSName("elsewhere.example"))
        for path in folder.iterdir():
            path.chmod(0o644)
        yield Certificates(folder)


def tls_of(made: Certificates, name: str) -> backends.Tls:
    return backends.Tls(*made.server(name), made.ca)


def printed(which: str, ca: str) -> dict[str, str]:
    """The options that the page prints, with an authority's file."""
    parser = configparser.ConfigParser()
    parser.read_string(block(*TLS[which]).replace("/etc/micronova/ca.pem", ca))
    [group] = parser.sections()
    return dict(parser[group])


# --- RabbitMQ


class Endpoint:
    """Answers."""

    def ask(self, ctxt: Any) -> str:
        return "here"


@dataclass(frozen=True)
class Brokers:
    """Two: with a certificate for its address, and for another name."""

    right: str
    misnamed: str


@pytest.fixture(scope="module")
def brokers(made: Certificates) -> Iterator[Brokers]:
    with (
        broker(tls=tls_of(made, "here")) as right,
        broker(tls=tls_of(made, "elsewhere")) as misnamed,
    ):
        yield Brokers(right.url, misnamed.url)


def conf_of(url: str, **options: Any) -> Any:
    """A service's configuration."""
    conf = config.load([*configuration.registers("scheduler")])
    conf.set_override("transport_url", url)
    for name, value in options.items():
        conf.set_override(name, value, group="oslo_messaging_rabbit")
    return conf


def by_tls(url: str, ca: str) -> Any:
    """The same, with what the page prints."""
    return conf_of(url, **printed("bus", ca))


def problem(conf: Any) -> str:
    """Why the bus can't be reached."""
    made = rpc.transport(conf)
    with (
        pytest.raises((oslo_messaging.MessageDeliveryFailure, OperationalError)) as raised,
        made._driver._get_connection(retry=1),
    ):
        pass
    return str(raised.value)


def twice(url: str) -> str:
    """The URL with the same host two times."""
    login = url.removeprefix("rabbit://").rstrip("/")
    return f"rabbit://{login},{login}/"


@pytest.mark.parametrize("of", [str, twice])
def test_a_broker_is_asked_by_tls(brokers: Brokers, made: Certificates, of: Any) -> None:
    conf = by_tls(of(brokers.right), made.ca)
    bus = rpc.transport(conf)
    server = rpc.Server(bus, "tls", "here", [Endpoint()], workers=1)
    server.start()
    assert rpc.Client(bus, "tls").call(context.internal(), "ask") == "here"
    server.stop()
    bus.cleanup()


@pytest.mark.parametrize("of", [str, twice])
def test_a_broker_that_is_another_is_refused(
    brokers: Brokers, made: Certificates, of: Any
) -> None:
    wrong = by_tls(of(brokers.right), made.other_ca)
    assert "certificate verify failed" in problem(wrong)
    system = conf_of(of(brokers.right), ssl=True)
    assert "certificate verify failed" in problem(system)
    named = by_tls(of(brokers.misnamed), made.ca)
    assert "certificate is not valid for '127.0.0.1'" in problem(named)
    assert problem(conf_of(of(brokers.right)))


def test_the_doctor_sees_it_as_the_services_do(brokers: Brokers, made: Certificates) -> None:
    def codes(url: str, ca: str) -> set[str]:
        return {one.code for one in doctor.bus(by_tls(url, ca))}

    assert "bus_unreachable" not in codes(brokers.right, made.ca)
    assert codes(brokers.right, made.other_ca) == {"bus_unreachable"}
    assert codes(brokers.misnamed, made.ca) == {"bus_unreachable"}


# --- PostgreSQL

HBA = """\
host all postgres 127.0.0.1/32 trust
hostssl all micronova 127.0.0.1/32 trust
"""


@contextlib.contextmanager
def postgres(made: Certificates, name: str) -> Iterator[backends.Postgres]:
    certificate, key = made.server(name)
    with backends.private_folder() as folder:
        mine, hba = folder / "key", folder / "hba"
        shutil.copy(key, mine)
        who = backends.account("postgres").name
        if who is not None:
            os.chown(mine, pwd.getpwnam(who).pw_uid, -1)
        mine.chmod(0o600)
        hba.write_text(HBA)
        hba.chmod(0o644)
        files = {"ssl_cert_file": certificate, "ssl_key_file": str(mine), "hba_file": str(hba)}
        with backends.postgres(ssl="on", **files) as server:
            server.execute("CREATE ROLE micronova LOGIN", "CREATE DATABASE micronova")
            yield server


@pytest.fixture(scope="module", params=["here", "elsewhere"])
def server(
    request: pytest.FixtureRequest, made: Certificates
) -> Iterator[tuple[str, backends.Postgres]]:
    with postgres(made, request.param) as running:
        yield request.param, running


ASK = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


def url_of(server: backends.Postgres, ca: str | None) -> str:
    url = server.url("micronova", "micronova")
    return f"{url}?sslmode={f'verify-full&sslrootcert={ca}' if ca else 'disable'}"


def over_tls(url: str, kind: str) -> bool:
    """Whether a service's connection is encrypted, as the server says."""
    if kind == "placement":
        database = Database(url)
        try:
            return bool(database.read(lambda c: c.execute(sa.text(ASK)).scalar()))
        finally:
            database.close()
    made = (engine.writer if kind == "conductor" else engine.reader)(url)
    try:
        with made.connect() as connection:
            return bool(connection.execute(sa.text(ASK)).scalar())
    finally:
        made.dispose()


@pytest.mark.parametrize("kind", ["conductor", "api", "placement"])
def test_a_database_is_asked_by_tls(
    server: tuple[str, backends.Postgres], made: Certificates, kind: str
) -> None:
    name, running = server
    refusals: dict[str | None, str] = {
        made.other_ca: "certificate verify failed",
        None: "no encryption",
    }
    if name == "here":
        assert over_tls(url_of(running, made.ca), kind)
    else:
        refusals[made.ca] = 'does not match host name "127.0.0.1"'
        del refusals[made.other_ca]
    for ca, said in refusals.items():
        with pytest.raises((sa.exc.OperationalError, Unavailable)) as raised:
            over_tls(url_of(running, ca), kind)
        causes = f"{raised.value} {raised.value.__cause__}"
        assert said in causes


# --- memcached


@pytest.fixture(scope="module", params=["here", "elsewhere"])
def cache(request: pytest.FixtureRequest, made: Certificates) -> Iterator[tuple[str, str]]:
    with backends.memcached(tls_of(made, request.param)) as where:
        yield request.param, where


def tokens(where: str, **options: Any) -> Any:
    """The cache of tokens of an API."""
    conf = config.load([auth.register])
    for name, value in {"memcached_servers": [where], **options}.items():
        conf.set_override(name, value, group="keystone_authtoken")
    made = auth_token.AuthProtocol(
        lambda environ, start: [b""], {"oslo_config_config": conf, "auth_type": None}
    )
    made._token_cache.initialize({})
    return made._token_cache


def is_kept(cache: Any) -> bool:
    """Whether a token is found again."""
    token = uuid.uuid4().hex
    cache.set(token, {"token": "data"})
    return cache.get(token) is not None


def test_tokens_are_cached_by_tls(cache: tuple[str, str], made: Certificates) -> None:
    name, where = cache
    assert is_kept(tokens(where, **printed("tokens", made.ca))) == (name == "here")
    assert not is_kept(tokens(where, **printed("tokens", made.other_ca)))
    assert not is_kept(tokens(where))


def test_sessions_are_kept_by_tls(cache: tuple[str, str], made: Certificates) -> None:
    name, where = cache

    def keeps(ca: str | None) -> bool:
        options = {} if ca is None else printed("sessions", ca)
        store = MemcachedStore([where], options.get("memcached_ca_file"))
        try:
            store.put("a", b"session", time.time() + 60)
            return store.get("a", time.time()) == b"session"
        except (OSError, MemcacheError):
            return False

    assert keeps(made.ca) == (name == "here")
    assert not keeps(made.other_ca)
    assert not keeps(None)


def test_a_file_that_is_not_there_is_said(made: Certificates) -> None:
    with pytest.raises(ConfigurationError, match="memcached_ca_file"):
        MemcachedStore(["127.0.0.1:1"], str(made.folder / "nothing"))
