"""The newest serial output of this worker's VMs during boot.

Proxmox VE stores none. A line has one reader at a time: a user's console takes it over, and its
output is logged too. The logs are in memory only, and lost when the process ends.
"""

from __future__ import annotations

import collections
import threading
from collections.abc import Mapping

from oslo_config import cfg

from common.log import logger
from common.messages.commands import Build, Command, Power, PowerAction
from common.messages.consoles import ConsoleTarget, ConsoleType
from common.messages.reports import Outcome
from common.streams import Stream
from compute.hypervisor.port import Hypervisor, HypervisorError

LOG = logger(__name__)

#: a boot is over by then
FOLLOW_SECONDS = 600.0
#: servers with a log; beyond that, the log of the earliest boot is dropped
MOST = 1000
_BOOTS = frozenset({PowerAction.START, PowerAction.REBOOT_SOFT, PowerAction.REBOOT_HARD})


class ConsoleLogs:
    """The texts of one worker; threads may share it."""

    def __init__(
        self, conf: cfg.ConfigOpts, hypervisors: Mapping[str, Hypervisor], worker: str
    ) -> None:
        able = any(hypervisor.has_consoles for hypervisor in hypervisors.values())
        self._bytes = conf.compute.console_log_kib << 10 if able else 0
        self._most = conf.compute.console_log_lines
        self._hypervisors, self._worker = hypervisors, worker
        self._lock = threading.Lock()
        self._texts: collections.OrderedDict[str, bytearray] = collections.OrderedDict()
        self._open: dict[str, Stream] = {}

    def after(self, command: Command, outcome: Outcome) -> None:
        """Follow the line of a VM that a command has just started."""
        started = type(command) is Build or (
            isinstance(command, Power) and command.action in _BOOTS
        )
        if not (self._bytes and outcome.ok and started):
            return
        where = command.placed
        target = ConsoleTarget(
            command.resource_id,
            ConsoleType.SERIAL,
            self._worker,
            where.cluster,
            where.node,
            where.vmid,
        )
        threading.Thread(
            target=self._follow, args=(target,), name="console-log", daemon=True
        ).start()

    def text(self, server_uuid: str) -> str | None:
        """Return a server's log, perhaps empty; None: this worker has no logs."""
        if not self._bytes:
            return None
        with self._lock:
            return bytes(self._texts.get(server_uuid, b"")).decode(errors="replace")

    def keep(self, server_uuid: str, content: bytes) -> None:
        """Append a line's output; the oldest output is dropped beyond the limit."""
        if not self._bytes:
            return
        with self._lock:
            kept = self._texts.setdefault(server_uuid, bytearray())
            kept += content
            del kept[: -self._bytes]
            while len(self._texts) > MOST:
                self._texts.popitem(last=False)

    def let_go(self, server_uuid: str) -> None:
        """Leave a server's line to somebody else."""
        with self._lock:
            stream = self._open.pop(server_uuid, None)
        if stream is not None:
            stream.close()

    def stop(self) -> None:
        """Leave all lines."""
        with self._lock:
            servers = list(self._open)
        for server in servers:
            self.let_go(server)

    def _follow(self, target: ConsoleTarget) -> None:
        server = target.server_uuid
        self.let_go(server)
        with self._lock:
            if len(self._open) >= self._most:
                LOG.info(
                    "Server %s: console log skipped: the limit of %d readers is reached.",
                    server,
                    self._most,
                )
                return
            # A new boot, a new text.
            self._texts[server] = bytearray()
            self._texts.move_to_end(server)
        try:
            stream = self._hypervisors[target.cluster].open_console(target)
        except HypervisorError as error:
            LOG.info("Server %s: console log skipped: %s", server, error.message)
            return
        with self._lock:
            self._open[server] = stream
        over = threading.Timer(FOLLOW_SECONDS, stream.close)
        over.daemon = True
        over.start()
        try:
            while (content := stream.receive()) is not None:
                self.keep(server, content)
        finally:
            over.cancel()
            stream.close()
            with self._lock:
                if self._open.get(server) is stream:
                    del self._open[server]


class Kept:
    """A console's stream whose output is also written to the log."""

    def __init__(self, stream: Stream, logs: ConsoleLogs, server_uuid: str) -> None:
        self._stream, self._logs, self._server = stream, logs, server_uuid

    def receive(self) -> bytes | None:
        """See ``Stream``."""
        content = self._stream.receive()
        if content is not None:
            self._logs.keep(self._server, content)
        return content

    def send(self, content: bytes) -> None:
        """See ``Stream``."""
        self._stream.send(content)

    def close(self) -> None:
        """See ``Stream``."""
        self._stream.close()
