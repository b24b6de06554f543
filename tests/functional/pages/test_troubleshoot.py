"""docs/troubleshoot.md by symptom, on simulated clusters.

Each fault is made; the doctor says what the page says, and the page's remedy ends it. What is of
databases, message bus and proxy is in test_troubleshoot_services.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import ipaddress
import shutil
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from common import clock
from simulator.server import Options, Simulator
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.pages.played import Played, Player
from tests.functional.pages.reading import Desk
from tests.functional.pages.test_lost import options

pytestmark = [pytest.mark.long, pytest.mark.timeout(2400), pytest.mark.filterwarnings("ignore")]

PAGE = "docs/troubleshoot.md"
CREATE = "openstack --os-compute-api-version 2.74 server create --image cirros --flavor m1.tiny"


class Renewable(Simulator):
    """Clusters whose certificate is exchanged while they run."""

    tls: ssl.SSLContext

    def _tls_context(self) -> ssl.SSLContext:
        self.tls = super()._tls_context()
        return self.tls


@contextlib.contextmanager
def clusters(folder: Path) -> Iterator[Renewable]:
    """Run a cluster of three nodes."""
    with Renewable(Options(folder, nodes=3, bridges=1, tls=True, speed=100)) as running:
        token = folder / "token"
        token.write_text(f"{running.token['tokenid']}={running.token['secret']}\n")
        token.chmod(0o600)
        yield running


@contextlib.contextmanager
def a_desk(simulator: Simulator, folder: Path) -> Iterator[Desk]:
    """Somebody who is also root on its nodes."""
    (folder / "home").mkdir()
    made = Desk(folder / "home")
    made.on_a_node(str(simulator.endpoints[0]["url"]), folder / "pve")
    yield made
    made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("troubles")


@pytest.fixture(scope="module")
def simulator(folder: Path) -> Iterator[Renewable]:
    with clusters(folder / "pve") as running:
        yield running


@pytest.fixture(scope="module")
def cloud(simulator: Renewable, folder: Path) -> Iterator[EmbeddedCloud]:
    with embedded_cloud(folder / "state", audited=False, **options(simulator, folder)) as running:
        yield running


@pytest.fixture(scope="module")
def desk(simulator: Renewable, cloud: EmbeddedCloud, folder: Path) -> Iterator[Desk]:
    """A reader of a cloud in which nothing is wrong, and which has a server."""
    with a_desk(simulator, folder) as made:
        prepare(made, cloud)
        made.run(f"{CREATE} --host pve3 --wait web", cloud.environment("micronova"))
        yield made


def prepare(desk: Desk, cloud: EmbeddedCloud) -> None:
    """Mend what the doctor finds of a new cluster."""
    desk.run(
        "micronova doctor --fix-lines > lines || bash -e lines", cloud.environment("micronova")
    )


@pytest.fixture
def player(cloud: EmbeddedCloud, desk: Desk) -> Iterator[Player]:
    yield Player(desk, cloud.environment("micronova"))
    desk.control("DELETE", "faults")


def read(player: Player, symptom: str, *blocks: int) -> None:
    player.play(Played(PAGE, f"### {symptom}"), *blocks)


def test_a_node_is_lost(player: Player) -> None:
    player.desk.control("POST", "faults", action="node-down", node="pve3")
    read(player, "A node is lost", 0)
    player.desk.control("DELETE", "faults")  # somebody switches it on
    read(player, "A node is lost", 1)


def test_a_storage_is_full(player: Player, simulator: Renewable) -> None:
    cluster = simulator.cluster()
    with cluster.turn():
        one = next(v for v in cluster.volumes.all() if v.storage == "shared" and v.vmid)
        size = cluster.storages["shared"].capacity
        name = "900/vm-900-disk-0.raw"
        left = {"format": "raw", "vmid": 900, "parent": "", "data": "", "content": "images"}
        cluster.add_volume(dataclasses.replace(one, name=name, size=size, used=size, **left))
    read(player, "A storage is full, or gone")


def test_the_database_was_restored(tmp_path: Path) -> None:
    state, saved = tmp_path / "state", tmp_path / "saved"
    with clusters(tmp_path / "pve") as simulator, a_desk(simulator, tmp_path) as desk:
        given = options(simulator, tmp_path)
        with embedded_cloud(state, **given) as cloud:
            prepare(desk, cloud)
            desk.run(f"{CREATE} --wait old", cloud.environment("micronova"))
            cloud.stop()
        shutil.copytree(state, saved)
        with embedded_cloud(state, **given) as cloud:
            desk.run(f"{CREATE} --wait since", cloud.environment("micronova"))
            cloud.stop()
        shutil.rmtree(state)
        shutil.copytree(saved, state)
        with embedded_cloud(state, audited=False, **given) as cloud:
            read(Player(desk, cloud.environment("micronova")), "The database was restored")


def test_everything_is_slow(player: Player) -> None:
    player.desk.control("POST", "faults", action="daemon-hung", node="pve2")
    read(player, "Everything is slow")


def test_a_certificate_has_expired(player: Player, simulator: Renewable, folder: Path) -> None:
    good, key = folder / "pve" / "ca.pem", folder / "pve" / "tls-key.pem"
    file = folder / "expired.pem"
    file.write_bytes(expired(good.read_bytes(), key.read_bytes()))
    simulator.tls.load_cert_chain(file, key)

    def renew(words: Sequence[str]) -> bool:
        shutil.copy(good, file)
        return list(words) == ["updatecerts", "--force"]

    def restart(words: Sequence[str]) -> bool:
        simulator.tls.load_cert_chain(file, key)
        return list(words) == ["restart", "pveproxy"]

    player.desk.install("pvecm", renew)
    player.desk.install("systemctl", restart)
    try:
        read(player, "A certificate has expired")
    finally:
        player.desk.remove("pvecm")
        player.desk.remove("systemctl")
        simulator.tls.load_cert_chain(good, key)


def test_a_guest_has_no_network(player: Player, simulator: Renewable) -> None:
    simulator.cluster().nodes["pve2"].shown["interfaces"] = {"vmbr0": {"active": 0}}
    read(player, "A guest has no network")


def expired(authority: bytes, key: bytes) -> bytes:
    """Return a certificate that was good until yesterday, and is trusted otherwise."""
    private, now = serialization.load_pem_private_key(key, None), clock.utcnow()
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")]))
        .issuer_name(x509.load_pem_x509_certificate(authority).subject)
        .public_key(private.public_key())  # type: ignore[arg-type]
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=90))
        .not_valid_after(now - datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .sign(private, hashes.SHA256())  # type: ignore[arg-type]
    )
    return made.public_bytes(serialization.Encoding.PEM)
