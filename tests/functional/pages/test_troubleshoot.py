"""docs/troubleshoot.md by symptom: each is caused, and the doctor says what the page says."""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import db.restored
from common import clock
from simulator.server import Options, Simulator
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.pages.played import Played, Player
from tests.functional.pages.reading import Desk
from tests.functional.pages.test_lost import options

pytestmark = [pytest.mark.long, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

PAGE = "docs/troubleshoot.md"
#: nobody listens there
DEAD = "127.0.0.1:9"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("troubles")


@pytest.fixture(scope="module")
def simulator(folder: Path) -> Iterator[Simulator]:
    with Simulator(Options(folder / "pve", nodes=3, bridges=1, tls=True, speed=100)) as running:
        token = folder / "pve" / "token"
        token.write_text(f"{running.token['tokenid']}={running.token['secret']}\n")
        token.chmod(0o600)
        yield running


@pytest.fixture(scope="module")
def cloud(simulator: Simulator, folder: Path) -> Iterator[EmbeddedCloud]:
    with embedded_cloud(folder / "state", audited=False, **options(simulator, folder)) as running:
        yield running


@pytest.fixture(scope="module")
def desk(simulator: Simulator, folder: Path) -> Iterator[Desk]:
    (folder / "home").mkdir()
    made = Desk(folder / "home")
    made.on_a_node(str(simulator.endpoints[0]["url"]), folder / "pve")
    yield made
    made.close()


@pytest.fixture
def player(cloud: EmbeddedCloud, desk: Desk) -> Iterator[Player]:
    yield Player(desk, cloud.environment("micronova"))
    desk.control("DELETE", "faults")


def see(player: Player, symptom: str) -> None:
    player.play(Played(PAGE, f"### {symptom}"))


def configured(player: Player, folder: Path, *sections: str) -> Player:
    """A reader whose configuration has only this."""
    file = folder / "micronova.conf"
    file.write_text("\n".join(sections))
    file.chmod(0o600)
    return Player(player.desk, {**player.environment, "MICRONOVA_CONFIG": str(file)})


def test_a_node_is_lost(player: Player) -> None:
    player.desk.control("POST", "faults", action="node-down", node="pve3")
    see(player, "A node is lost")


def test_a_storage_is_full(player: Player, simulator: Simulator) -> None:
    storage = simulator.cluster().storages["shared"]
    before, storage.capacity = storage.capacity, 1 << 30
    try:
        see(player, "A storage is full, or gone")
    finally:
        storage.capacity = before


def test_the_message_bus_is_lost(player: Player, tmp_path: Path) -> None:
    bus = f"transport_url = rabbit://u:p@{DEAD}/"
    see(configured(player, tmp_path, "[DEFAULT]", bus), "The message bus is lost")


def test_the_database_is_lost(player: Player, tmp_path: Path) -> None:
    url = f"connection = postgresql+psycopg://nobody:x@{DEAD}/cloud"
    see(configured(player, tmp_path, "[database]", url), "The database is lost, or full")


def test_the_database_was_restored(player: Player, cloud: EmbeddedCloud, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/cloud.sqlite"
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(
                f"{cloud.state_dir}/cloud.sqlite{suffix}", f"{tmp_path}/cloud.sqlite{suffix}"
            )
    db.restored.hold(url, "2026-01-01T00:00:00+00:00", 7)
    held = configured(player, tmp_path, "[database]", f"connection = {url}")
    see(held, "The database was restored")


def test_everything_is_slow(player: Player) -> None:
    player.desk.control("POST", "faults", action="daemon-hung", node="pve2")
    see(player, "Everything is slow")


def test_clients_get_502(player: Player) -> None:
    listed = "openstack endpoint list --service compute --interface public -f value"
    number = player.desk.run(f"{listed} -c ID", player.environment).strip()
    url = player.desk.run(f"{listed} -c URL", player.environment).strip()
    change = "openstack endpoint set --url"
    player.desk.run(f"{change} http://{DEAD}/ {number}", player.environment)
    try:
        see(player, "Clients get 502, 503 or no answer")
    finally:
        player.desk.run(f"{change} {url} {number}", player.environment)


def test_a_certificate_has_expired(player: Player, simulator: Simulator, tmp_path: Path) -> None:
    with expired(tmp_path) as url:
        token = tmp_path / "token"
        token.write_text(f"{simulator.token['tokenid']}={simulator.token['secret']}")
        token.chmod(0o600)
        cluster = [f"endpoints = {url}", f"token_file = {token}", f"ca_file = {tmp_path}/ca.pem"]
        settings = ["[proxmox]", "clusters = c1", "[proxmox:c1]", *cluster]
        see(configured(player, tmp_path, *settings), "A certificate has expired")


def test_a_guest_has_no_network(player: Player, simulator: Simulator) -> None:
    node = simulator.cluster().nodes["pve2"]
    node.shown["interfaces"] = {"vmbr0": {"active": 0}}
    try:
        see(player, "A guest has no network")
    finally:
        del node.shown["interfaces"]


@contextlib.contextmanager
def expired(folder: Path) -> Iterator[str]:
    """A server whose certificate was good until yesterday, and is trusted otherwise."""
    key, now = ec.generate_private_key(ec.SECP256R1()), clock.utcnow()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=90))
        .not_valid_after(now - datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "ca.pem").write_bytes(made.public_bytes(pem))
    (folder / "key.pem").write_bytes(key.private_bytes(pem, *form))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_shake_hands, args=(listener, context), daemon=True).start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"


def _shake_hands(listener: socket.socket, context: ssl.SSLContext) -> None:
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True):
                pass
