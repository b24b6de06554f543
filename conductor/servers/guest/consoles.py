"""Consoles: who may open one gets a token, and the proxy learns where the VM is."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from common import clock
from common.context import RequestContext
from common.errors import Conflict, Invalid, NotFound, NotSupported, ServerStateConflict
from common.log import logger
from common.messages.consoles import ConsoleTarget, ConsoleType
from common.messages.questions import CheckConsole
from common.resources.states import TaskState
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.store import call_answers
from conductor.store.records import Server
from conductor.store.servers import console_tokens, servers
from conductor.store.servers.console_tokens import Permit
from conductor.store.transactions import Transaction

LOG = logger(__name__)

#: protocol → the type that it has here; Nova's other protocols are refused
_TYPES: Mapping[str, ConsoleType] = {"vnc": ConsoleType.NOVNC, "serial": ConsoleType.SERIAL}
_REFUSED_WHILE = frozenset({TaskState.DELETING, TaskState.MIGRATING})
_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


def authorize(
    cloud: Cloud,
    ctxt: RequestContext,
    server_uuid: str,
    protocol: str,
    console_type: str,
    token_hash: str,
) -> None:
    """See ``ConductorRpc.authorize_console``."""
    with cloud.store.read() as connection:
        server = servers.alive(connection, server_uuid, scope(ctxt), lock=False)
        check_state(server, protocol)
        wanted = type_of(protocol, console_type)
        target = _target(cloud, connection, server, wanted)
    problem = cloud.compute.ask(ctxt, target, CheckConsole(target))
    if problem is not None:
        LOG.info("Server %s has no %s console: %s", server.uuid, wanted, problem)
        raise NotSupported(f"Unavailable console type {console_type}.", reason=problem)
    options = cloud.conf.console
    url = urlsplit(options.novnc_url if wanted is ConsoleType.NOVNC else options.serial_url)
    cloud.store.run(
        lambda connection: console_tokens.insert(
            connection,
            token_hash,
            Permit(server.uuid, wanted.value),
            host=str(server.host),
            port=url.port or _PORTS.get(url.scheme, 0),
            now=clock.utcnow(),
            expires_at=clock.after(options.token_seconds),
        )
    )
    LOG.info("A %s console of server %s may be opened.", wanted, server.uuid)


def use_token(cloud: Cloud, token_hash: str) -> ConsoleTarget:
    """See ``ConductorRpc.use_console_token``."""

    def work(connection: Transaction) -> ConsoleTarget:
        permit = console_tokens.use(connection, token_hash, clock.utcnow())
        if permit is None:
            raise NotFound("The token is unknown, has expired or was used.")
        server = servers.alive(connection, permit.server_uuid, None, lock=False)
        wanted = ConsoleType(permit.console_type)
        check_state(server, "vnc" if wanted is ConsoleType.NOVNC else "serial")
        target = _target(cloud, connection, server, wanted)
        call_answers.note(connection, target)
        return target

    return cloud.store.run(work)


def check_state(server: Server, protocol: str) -> None:
    """Raise Conflict, in Nova's words, for a server without a host, or leaving its host."""
    if server.host is None:
        raise Conflict(f"Instance {server.uuid} is not ready")
    if server.task_state in _REFUSED_WHILE:
        raise ServerStateConflict(
            action=f"get_{protocol}_console",
            server_uuid=server.uuid,
            attribute="task_state",
            state=str(server.task_state),
        )


def type_of(protocol: str, console_type: str) -> ConsoleType:
    """Return the console asked for. Raises NotSupported or Invalid, in Nova's words."""
    offered = _TYPES.get(protocol)
    if offered is None:
        raise NotSupported(f"Unavailable console type {console_type}.")
    if console_type != offered:
        raise Invalid(f"Invalid console type {console_type}")
    return offered


def _target(
    cloud: Cloud, connection: Transaction, server: Server, wanted: ConsoleType
) -> ConsoleTarget:
    worker = cloud.worker_of(connection, str(server.host))
    placed = (server.cluster, server.node, server.vmid)
    if worker is None or server.cluster is None or server.node is None or server.vmid is None:
        LOG.info("Server %s (%s) has no console: no agent carries its host.", server.uuid, placed)
        raise Conflict(f"Instance {server.uuid} is not ready")
    return ConsoleTarget(server.uuid, wanted, worker, server.cluster, server.node, server.vmid)
