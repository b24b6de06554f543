"""A cloud of many processes for tests, as `docs/deploy.md` describes it, on private servers.

PostgreSQL (two databases, a role that only reads), RabbitMQ, memcached, Keystone, the simulator;
two workers each of clients' APIs and of placement, two conductors, two schedulers, an agent for
each of three nodes. Every service is a process by name that a test may kill and start again. With
a proxy before them, there are two processes of clients' APIs and two of placement; with `spare`, a
replica of PostgreSQL, three nodes of RabbitMQ, and two workers that carry the nodes in turn; with
`screens`, a console proxy and a dashboard.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import openstack.config
import openstack.connection
import requests
from openstack.identity.v3 import _proxy as v3

from cli import leftovers
from common import config
from common.process.child import READY_FD, ROOT, Child, python
from common.rpc import senders
from identity.clouds import project_id, service_credentials, write_client_files
from identity.keystone import Keystone
from identity.layout import PEOPLE, REGION, SEPARATE, Endpoint, identity_at
from identity.passwords import load_passwords
from identity.private_file import write_private
from launcher import bus_users as bus_users_of
from launcher import configuration
from launcher.embedded.settings import FLAVORS, Sections, render
from tests.fixtures import null
from tests.functional import backends, brokers, postgres_pair, proxies, simulator_control
from tests.functional.audits import Audits
from tests.functional.waiting import eventually

Login: TypeAlias = dict[str, str]
"""Login options of one user."""

NODES = ("pve1", "pve2", "pve3")
_IN_TURN = ("east-1", "east-2")
"""Agents of all nodes: one works, the other one stands by."""
START_SECONDS = 240
SPEED = 100
_APIS = {"compute": "public", "placement": "placement"}
"""{name of the process: what it serves}; the first one serves every API of clients."""
_COMPACT = {"compute": "all"}

CONSOLE, DASHBOARD = "console", "dashboard"
#: what is served by a process with a file of its own, and without the bus
_LONE = frozenset({"placement", DASHBOARD})
SECOND_API, _SECOND_PLACEMENT = "compute-2", "placement-2"
_SECOND = {SECOND_API: "public", _SECOND_PLACEMENT: "placement"}
_REPLICAS = ("conductor-1", "conductor-2", "scheduler-1", "scheduler-2")

_WORKERS = 2

_TYPES = {
    "compute": ("nova", "/compute/v2.1"),
    "placement": ("placement", "/placement"),
    "image": ("glance", "/image"),
    "network": ("neutron", "/network"),
    "block-storage": ("cinder", "/volume/v3"),
    "volumev3": ("cinderv3", "/volume/v3"),
    "clustering": ("senlin", "/clustering"),
}
"""{API: name in the catalog, path}."""


@dataclasses.dataclass(frozen=True)
class _Layout:
    """Which processes there are, and where they listen."""

    apis: Mapping[str, str]
    """{name of the process: what it serves}."""
    ports: Mapping[str, int]
    front: int | None = None
    """Where a proxy listens that is before them."""
    console: int | None = None
    """Where a console proxy listens."""

    @property
    def compact(self) -> bool:
        """Whether it has the fewest processes."""
        return "placement" not in self.apis

    @property
    def replicas(self) -> tuple[str, ...]:
        """Processes of the message bus, agents left out."""
        found = [one for one in _REPLICAS if not (self.compact and one.startswith("sched"))]
        return (*found, *([CONSOLE] if self.console else []))

    def own(self, process: str) -> Sections:
        """Return the options of one of these processes."""
        kind = process.partition("-")[0]
        if kind != CONSOLE:
            return {kind: {"name": process}}
        relay = f"ws://127.0.0.1:{self.console}/relay"
        return {kind: {"port": str(self.console), "relay_url": relay}}

    def url(self, kind: str) -> str:
        """Return where an API is."""
        if self.front is not None:
            return f"http://127.0.0.1:{self.front}{_TYPES[kind][1]}"
        if kind == "placement" and not self.compact:
            return f"http://127.0.0.1:{self.ports[kind]}"
        return f"http://127.0.0.1:{self.ports['compute']}{_TYPES[kind][1]}"


@dataclasses.dataclass(frozen=True)
class Programs:
    """An installation of micronova."""

    python: str
    folder: Path
    """Where it runs: a tree, or a folder without one for a wheel's."""
    gunicorn: Path
    """Its settings of gunicorn."""

    def child(
        self, name: str, module: str, words: Sequence[str], log: Path, extra: Mapping[str, str]
    ) -> Child:
        """Return one of its processes."""
        environment = {"PYTHONPATH": str(self.folder), **extra}
        command = [self.python, "-m", module, *words]
        return Child(name, command, log, extra_environment=environment, folder=self.folder)

    def micronova(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of it, as an operator does."""
        return subprocess.run(
            [self.python, "-m", "micronova", *words],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )


TREE = Programs(sys.executable, ROOT, ROOT / "etc" / "gunicorn.conf.py")


@dataclasses.dataclass
class DistributedCloud:
    """The running cloud; `children` are its processes by name."""

    folder: Path
    postgres: backends.Postgres
    broker: brokers.Broker
    children: dict[str, Child]
    ports: Mapping[str, int]
    metrics_ports: Mapping[str, int]
    """{process: where it answers Prometheus}."""
    make: Callable[[str, Programs], Child]
    """Makes a process by name."""
    url: str
    """The compute API, by its proxy if there is one."""
    keystone: Keystone
    pair: postgres_pair.Pair | None = None
    cluster: brokers.Cluster | None = None
    proxied: proxies.States | None = None
    """What the proxy thinks of its servers, if it says so."""

    def replace(self, name: str, programs: Programs) -> None:
        """Let a process end in order, and start that of another installation in its place."""
        child = self.children[name]
        child.signal(signal.SIGTERM)
        eventually(lambda: child.pid is None, START_SECONDS)
        self.children[name] = self.make(name, programs)
        self.children[name].start()
        self.wait_started(name)

    @property
    def base_url(self) -> str:
        """The dashboard's address."""
        return f"http://127.0.0.1:{self.ports[DASHBOARD]}"

    @property
    def state_dir(self) -> Path:
        """What the dashboard's folder is in."""
        return self.folder

    def config(self, name: str) -> Any:
        """Return a cloud of clouds.yaml: micronova, -admin, -demo or -reader."""
        return openstack.config.OpenStackConfig(
            config_files=[str(self.folder / "clouds.yaml")], load_envvars=False
        ).get_one(name)

    def connection(self, name: str = "micronova-demo") -> Any:
        """Return an openstacksdk connection."""
        return openstack.connection.Connection(config=self.config(name))

    def environment(self, name: str = "micronova") -> dict[str, str]:
        """Return the environment of a client's shell."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("OS_")}
        yaml = str(self.folder / "clouds.yaml")
        return kept | {"OS_CLIENT_CONFIG_FILE": yaml, "OS_CLOUD": name}

    def answer(self, name: str, path: str) -> str:
        """Return what a process answers to operators; empty: nothing."""
        try:
            url = f"http://127.0.0.1:{self.metrics_ports[name]}/{path}"
            return requests.get(url, timeout=60).text
        except requests.RequestException:
            return ""

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to a service and its workers, e.g. ``conductor-1``, ``placement``."""
        pid = self.children[name].pid
        assert pid is not None, f"{name} doesn't run"
        os.killpg(pid, number)  # each child leads a session of its own

    def restart(self, name: str) -> None:
        """Start a process again, after its end."""
        child = self.children[name]
        child.stop(0 if child.pid is None else 20)
        child.start()
        self.wait_started(name)

    def wait_started(self, name: str) -> None:
        """Return when the process takes requests."""
        child = self.children[name]
        if name not in self.ports:
            for _ in child.messages(START_SECONDS):
                pass
            return
        url = f"http://127.0.0.1:{self.ports[name]}/"
        eventually(lambda: child.pid is None or _answers(url), START_SECONDS)
        assert child.pid is not None, f"{name}: {child.log_path.read_text()[-3000:]}"

    def held(self) -> dict[str, leftovers.Held]:
        """Return what the simulated cluster holds of servers."""
        return leftovers.held(self.folder / "simulator")

    def control(self, method: str, door: str, /, **body: Any) -> Any:
        """Ask the simulator's control API."""
        return simulator_control.control(self.folder / "simulator", method, door, **body)

    def logs(self) -> str:
        """Return the end of every process's log."""
        return "".join(
            f"\n--- {path.name}\n{path.read_text(errors='replace')[-2000:]}"
            for path in sorted((self.folder / "log").glob("*.log"))
        )


@contextlib.contextmanager
def distributed_cloud(
    folder: Path,
    *,
    audited: bool = True,
    null_hosts: int = 0,
    postgres_settings: Mapping[str, str] | None = None,
    database: postgres_pair.Member | None = None,
    clocks: Mapping[str, Path] | None = None,
    proxy: str | None = None,
    spare: bool = False,
    compact: bool = False,
    bus_users: bool = True,
    screens: bool = False,
    programs: Programs = TREE,
) -> Iterator[DistributedCloud]:
    """Run it in `folder` until the block ends; about half a minute to start.

    An audit must then find nothing left, unless `audited` is False. With `null_hosts` there is no
    simulator: two agents share so many hosts without a hypervisor. Each process named in `clocks`
    has the clock that its file says: see `backends.moved_clock`. `proxy` is one of
    `proxies.PROXIES`. `compact` is the layout with the fewest processes: one serves every API,
    placement too, and conductors have schedulers of their own. `database` is a server
    that the test stops and starts. Each service has a user of its own
    on the bus, unless `bus_users` is False. With `screens` there are a console proxy and a
    dashboard. `programs` are what it consists of.
    """
    backends.require(
        backends.INITDB, backends.POSTGRES, backends.RABBITMQ, backends.EPMD, backends.MEMCACHED
    )
    with contextlib.ExitStack() as stack:
        pair = stack.enter_context(postgres_pair.pair()) if spare else None
        cluster = stack.enter_context(brokers.cluster()) if spare else None
        postgres = (
            pair.primary.server
            if pair
            else database.server
            if database
            else stack.enter_context(backends.postgres(**(postgres_settings or {})))
        )
        broker = cluster.nodes[0] if cluster else stack.enter_context(brokers.broker())
        bus = cluster or broker
        cache = stack.enter_context(backends.memcached())
        apis = {**(_COMPACT if compact else _APIS), **(_SECOND if proxy else {})}
        apis |= {DASHBOARD: DASHBOARD} if screens else {}
        ports = {name: backends.free_port() for name in apis}
        fronts = (backends.free_port() if wanted else None for wanted in (proxy, screens))
        layout = _Layout(apis, ports, *fronts)
        databases = make_databases(pair or postgres)
        keystone = stack.enter_context(_keystone(folder, layout))
        simulator = None if null_hosts else stack.enter_context(simulated(folder))
        agents = (
            _null_agents(null_hosts) if simulator is None else _agents(folder, simulator, spare)
        )
        logins = _logins(folder, keystone)
        common = _common(folder, logins["micronova-api"], layout, databases, bus.url, cache)
        buses = _buses(bus, agents, layout) if bus_users else {}
        logins |= dict(_agents_users(folder, logins["micronova-compute"], agents))
        names = (*apis, *layout.replicas, *(f"compute-{agent}" for agent in agents))
        metrics = {name: backends.free_port() for name in names}
        listed = _commands(folder, common, agents, layout, metrics, buses, logins)
        commands = {one[0]: one[1:] for one in listed}

        def make(name: str, programs: Programs) -> Child:
            module, words, extra = commands[name]
            of_clock = backends.moved_clock(clocks[name]) if clocks and name in clocks else {}
            if module == "gunicorn":
                words = [*words, "--config", str(programs.gunicorn)]
            log = folder / "log" / f"{name}.log"
            return programs.child(name, module, words, log, {**extra, **of_clock})

        children = {name: make(name, programs) for name in commands}
        proxied = proxy and stack.enter_context(_proxied(folder, proxy, layout, metrics))
        cloud = DistributedCloud(
            *(folder, postgres, broker, children, ports, metrics, make, layout.url("compute")),
            *(keystone, pair, cluster, proxied or None),
        )
        _upgrade(folder, programs)
        for name in cloud.children:
            stack.callback(_stop, cloud, name)
            cloud.children[name].start()
        for name in cloud.children:
            cloud.wait_started(name)
        found = [layout.url(kind) for kind in ("compute", "placement")]
        eventually(lambda: all(_answers(f"{one}/") for one in found), START_SECONDS)
        eventually(lambda: _hosts_up(cloud) == (null_hosts or len(NODES)), START_SECONDS)
        yield cloud
        if audited:
            Audits(cloud).assert_clean()
        for child in cloud.children.values():
            child.signal(signal.SIGTERM)  # all at once; each is waited for below


@contextlib.contextmanager
def _proxied(
    folder: Path, proxy: str, layout: _Layout, metrics: Mapping[str, int]
) -> Iterator[proxies.States | None]:
    """Run a proxy before both processes of each API; gives what it thinks of them."""
    two = (("compute", SECOND_API), ("placement", _SECOND_PLACEMENT))
    ports = layout.ports
    public, placement = (((ports[a], metrics[a]), (ports[b], metrics[b])) for a, b in two)
    assert layout.front is not None
    with proxies.PROXIES[proxy](proxies.Behind(folder, public, placement), layout.front) as states:
        yield states


@dataclasses.dataclass(frozen=True)
class Databases:
    """SQLAlchemy URLs."""

    cloud: str
    """The owner's, as is `placement_owner`; only upgrades use them."""
    writer: str
    reader: str
    placement_owner: str
    placement: str
    replica: str | None
    """For the APIs, whichever server is the replica."""


_ROLES = (
    *("micronova", "micronova_conductor", "micronova_api"),
    *("placement", "micronova_placement"),
)


def make_databases(postgres: backends.Postgres | postgres_pair.Pair) -> Databases:
    """Make both databases, their owners, and a role that may read the cloud database."""
    words = {name: secrets.token_hex(12) for name in _ROLES}
    postgres.execute(*(f"CREATE ROLE {n} LOGIN PASSWORD '{word}'" for n, word in words.items()))
    postgres.execute(
        "CREATE DATABASE micronova OWNER micronova", "CREATE DATABASE placement OWNER placement"
    )
    return Databases(
        cloud=postgres.url("micronova", "micronova", words["micronova"]),
        writer=postgres.url("micronova", "micronova_conductor", words["micronova_conductor"]),
        reader=postgres.url("micronova", "micronova_api", words["micronova_api"]),
        placement_owner=postgres.url("placement", "placement", words["placement"]),
        placement=postgres.url("placement", "micronova_placement", words["micronova_placement"]),
        replica=postgres.url(
            *("micronova", "micronova_api", words["micronova_api"]),
            target_session_attrs="prefer-standby",
        )
        if isinstance(postgres, postgres_pair.Pair)
        else None,
    )


@contextlib.contextmanager
def _keystone(folder: Path, layout: _Layout) -> Iterator[Keystone]:
    """Run Keystone with the APIs in its catalog."""
    server = Keystone(folder, port=0)
    server.listen()
    try:
        passwords = _passwords(folder)
        endpoints = [identity_at(server.auth_url)]
        endpoints += [Endpoint(kind, name, layout.url(kind)) for kind, (name, _) in _TYPES.items()]
        server.prepare(endpoints, passwords, lambda step: None)
        server.start()
        server.wait_ready(START_SECONDS)
        write_client_files(
            folder,
            server.auth_url,
            passwords,
            project_id(server.auth_url, passwords),
        )
        yield server
    finally:
        server.stop()


def _passwords(folder: Path) -> Mapping[str, str]:
    return load_passwords(folder, users=(*PEOPLE, *SEPARATE))


def _logins(folder: Path, keystone: Keystone) -> dict[str, Login]:
    """Return the services' logins, by their users."""
    passwords = _passwords(folder)
    return {
        user: service_credentials(keystone.auth_url, passwords, user=user) for user in SEPARATE
    }


@contextlib.contextmanager
def simulated(folder: Path) -> Iterator[Child]:
    """Run the simulator in a folder; its messages are left to the caller."""
    words = [
        *("--state-dir", str(folder / "simulator"), "--tls", "--port", "0"),
        *("--nodes", str(len(NODES)), "--speed", str(SPEED), "--ready-fd", READY_FD),
    ]
    simulator = Child("simulator", python("simulator", *words), folder / "log" / "simulator.log")
    try:
        simulator.start()
        yield simulator
    finally:
        simulator.stop()


def _common(
    folder: Path,
    credentials: Mapping[str, str],
    layout: _Layout,
    databases: Databases,
    bus: str,
    cache: str,
) -> Path:
    """Write the files that services share, each with the databases it may see; return the one
    without any."""
    shared: Sections = {
        "DEFAULT": {"transport_url": bus},
        "keystone_authtoken": {
            "www_authenticate_uri": credentials["auth_url"],
            "memcached_servers": cache,
            "service_token_roles": "service",
            "service_token_roles_required": "true",
        },
        "placement": {
            "region_name": REGION,
            "endpoint_override": layout.url("placement"),
        },
        "quota": {"instances": "-1", "cores": "-1", "ram": "-1"},
    }
    if layout.console:
        shared["console"] = {
            "novnc_url": f"http://127.0.0.1:{layout.console}/vnc_auto.html",
            "serial_url": f"ws://127.0.0.1:{layout.console}/",
        }
    path = folder / "micronova.conf"
    write_private(path, render(shared))
    owners: dict[str, Sections] = {
        "conductor": {
            "conductor": {"own_scheduler": str(layout.compact)},
            "database": {"connection": databases.writer},
            "networks": {"subnets": "vmbr0=10.20.0.0/16,vmbr1=10.21.0.0/16"},
            "seed": {"flavors": ",".join(FLAVORS)},
        },
        "api": {
            "database": {"reader_connection": databases.reader}
            | ({"replica_connection": databases.replica} if databases.replica else {}),
            "audit_log": {"file": str(folder / "audit.log")},
        },
        "placement": {"placement_database": {"connection": databases.placement}},
        DASHBOARD: {
            DASHBOARD: {
                "auth_url": credentials["auth_url"],
                "state_dir": str(folder / DASHBOARD),
            }
        },
    }
    if layout.compact:
        owners["api"] |= owners["placement"]
    owners["owners"] = {
        "database": {"connection": databases.cloud},
        "placement_database": {"connection": databases.placement_owner},
    }
    for name, sections in owners.items():
        write_private(folder / f"{name}.conf", render(sections))
    return path


def _commands(
    folder: Path,
    common: Path,
    agents: Mapping[str, Sections],
    layout: _Layout,
    metrics: Mapping[str, int],
    buses: Mapping[str, str],
    logins: Mapping[str, Login],
) -> Iterator[tuple[str, str, list[str], dict[str, str]]]:
    """Yield name, module, arguments and environment of every process of ours."""
    answering: dict[str, Sections] = {
        name: {
            "metrics": {"port": str(port)},
            **_bus(buses, name, layout, agents),
            **_login(logins, name, layout),
        }
        for name, port in metrics.items()
    }
    for name, served in layout.apis.items():
        own = folder / (f"{served}.conf" if served in _LONE else "api.conf")
        port = folder / f"{name}-metrics.conf"
        write_private(port, render(answering[name]))
        words = [f"micronova.wsgi:{served}", "--workers", str(_WORKERS)]
        words += ["--bind", f"127.0.0.1:{layout.ports[name]}"]
        files = [own, port] if served == DASHBOARD else [common, own, port]
        yield name, "gunicorn", words, {"MICRONOVA_CONFIG": ":".join(str(one) for one in files)}
    for name in layout.replicas:
        kind = name.partition("-")[0]
        own = folder / f"{name}.conf"
        write_private(own, render({**layout.own(name), **answering[name]}))
        files = [common, own] + ([folder / "conductor.conf"] if kind == "conductor" else [])
        yield name, "micronova", _service(kind, *files), {}
    for agent, sections in agents.items():
        own = folder / f"compute-{agent}.conf"
        write_private(own, render({**sections, **answering[f"compute-{agent}"]}))
        yield f"compute-{agent}", "micronova", _service("compute", common, own), {}


def _buses(
    bus: brokers.Broker | brokers.Cluster, agents: Mapping[str, Sections], layout: _Layout
) -> dict[str, str]:
    """Make a user of the bus for each service; return {user: URL}."""
    conf = config.load([*configuration.registers()])
    conf.set_override("transport_url", bus.url)
    conf.set_override("own_scheduler", layout.compact, group="conductor")
    workers = [agent["compute"]["worker"] for agent in agents.values()]
    return bus.add_users(bus_users_of.users(conf, workers))


def _bus(
    buses: Mapping[str, str], process: str, layout: _Layout, agents: Mapping[str, Sections]
) -> Sections:
    """Return the option with the URL of a process's own user."""
    served = layout.apis.get(process)
    if not buses or served in _LONE:
        return {}
    kind, _, name = process.partition("-")
    if served:
        user = senders.user_of(senders.API)
    elif kind == senders.COMPUTE:
        user = senders.user_of(kind, agents[name]["compute"]["worker"])
    else:
        user = senders.user_of(kind)
    return {"DEFAULT": {"transport_url": buses[user]}}


def _login(logins: Mapping[str, Login], process: str, layout: _Layout) -> Sections:
    """Return the options by which a process logs in to Keystone, with a user of its own."""
    if process in (CONSOLE, DASHBOARD):
        return {}
    if served := layout.apis.get(process):
        login = logins["micronova-placement" if served == "placement" else "micronova-api"]
        return {"keystone_authtoken": login, "placement": login}
    kind = process.partition("-")[0]
    user = f"micronova-{process if kind == senders.COMPUTE else kind}"
    return {"placement": logins[user]}


def _agents_users(
    folder: Path, like: Login, agents: Mapping[str, Sections]
) -> Iterator[tuple[str, Login]]:
    """Make a user in Keystone for each worker, which may publish its hosts; yield the logins."""
    config = openstack.config.OpenStackConfig(
        config_files=[str(folder / "clouds.yaml")], load_envvars=False
    )
    with openstack.connection.Connection(config=config.get_one("micronova-admin")) as admin:
        identity = admin.identity
        assert isinstance(identity, v3.Proxy)
        project = identity.find_project("service", ignore_missing=False)
        agent = identity.find_role("agent", ignore_missing=False)
        for name, sections in agents.items():
            hosts = f"{name}-*" if "null" in sections else "pve*" if name in _IN_TURN else name
            of_hosts = f"agent@{hosts}"
            role = identity.find_role(of_hosts) or identity.create_role(name=of_hosts)
            login = {**like, "username": f"micronova-compute-{name}"}
            login["password"] = secrets.token_hex(12)
            user = identity.create_user(name=login["username"], password=login["password"])
            for one in (agent, role):
                identity.assign_project_role_to_user(project, user, one)
            yield login["username"], login


def _service(kind: str, *files: Path) -> list[str]:
    words = ["service", kind]
    for path in files:
        words += ["--config-file", str(path)]
    return words


def _null_agents(hosts: int) -> dict[str, Sections]:
    """Return the configurations of two agents that share so many hosts."""
    shares = {"null1": hosts - hosts // 2, "null2": hosts // 2}
    return {
        name: {
            "compute": {"worker": name, "driver": null.DRIVER},
            "null": {"cluster": name, "prefix": f"{name}-", "hosts": str(share)},
        }
        for name, share in shares.items()
        if share
    }


def _agents(folder: Path, simulator: Child, in_turn: bool) -> dict[str, Sections]:
    """Return the configurations of an agent for each simulated node, or of two for all."""
    endpoint = list(simulator.messages(START_SECONDS))[-1]["endpoints"][0]
    carried = dict.fromkeys(_IN_TURN, "") if in_turn else {node: node for node in NODES}
    return {name: _agent(folder, endpoint, name, hosts) for name, hosts in carried.items()}


def _agent(folder: Path, endpoint: Mapping[str, Any], name: str, hosts: str) -> Sections:
    simulator = folder / "simulator"
    return {
        "compute": {"worker": f"agent-{name}"},
        "proxmox": {"clusters": endpoint["cluster"]},
        f"proxmox:{endpoint['cluster']}": {
            "endpoints": endpoint["url"],
            "token_file": str(token_file(simulator)),
            "ca_file": str(simulator / "ca.pem"),
            "hosts": hosts,
        },
    }


def token_file(simulator: Path) -> Path:
    """Write the agents' token as their configuration wants it, and return the file."""
    import json

    token = json.loads((simulator / "token.json").read_text(encoding="utf-8"))
    path = simulator / "agent-token"
    write_private(path, f"{token['tokenid']}={token['secret']}\n")
    return path


def _stop(cloud: DistributedCloud, name: str) -> None:
    """Stop whatever runs under that name by then."""
    cloud.children[name].stop()


def _upgrade(folder: Path, programs: Programs) -> None:
    granted = {"reader": "api", "writer": "conductor", "placement": "placement"}
    roles = [f"--{option}-role=micronova_{role}" for option, role in granted.items()]
    done = programs.micronova(
        "db", "upgrade", "--config-file", str(folder / "owners.conf"), *roles
    )
    assert done.returncode == 0, done.stderr


def _hosts_up(cloud: DistributedCloud) -> int:
    for child in cloud.children.values():
        assert child.pid is not None, f"{child.name} ended: {cloud.logs()}"
    found = cloud.connection("micronova-admin").compute.hypervisors(details=True)
    return sum(one.state == "up" for one in found)


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=60).status_code < 500
    except (requests.ConnectionError, requests.Timeout):
        return False
