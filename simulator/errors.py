"""The simulator's error class, and Proxmox VE's texts for common failures.

An error raised in a request becomes its answer; raised in a task, it becomes the task's exit
status. So one class serves both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping


class PveError(Exception):
    """A failure as Proxmox VE reports it: HTTP status, text, and a map of parameter errors."""

    def __init__(
        self,
        text: str,
        status: int = 500,
        *,
        errors: Mapping[str, str] | None = None,
        body: bool = True,
        newline: bool = True,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.status = status
        self.errors = errors
        self.body = body
        self.newline = newline

    @property
    def task_text(self) -> str:
        """Return the text as a task's end shows it: with status and parameters, if any."""
        if self.errors is None:
            return self.text
        lines = [f"{name}: {text.strip()}" for name, text in sorted(self.errors.items())]
        return "\n".join([f"{self.status} {self.text}", *lines])

    @property
    def reason(self) -> str:
        """Return the text for the HTTP reason phrase: what clients get of its first line."""
        return re.sub(r"[\r\0]+", " ", self.text.strip()).partition("\n")[0].strip()


class Interrupted(PveError):
    """A worker received SIGTERM (a task stopped through the API)."""

    def __init__(self) -> None:
        super().__init__("received interrupt")


class LockedCommandTimeout(PveError):
    """Work under a storage's lock took too long; it may be half done."""

    def __init__(self, storage: str) -> None:
        super().__init__(f"'storage-{storage}'-locked command timed out - aborting")


class WorkerKilled(Exception):
    """The worker dies here without cleaning up, as by SIGKILL."""


class Dropped(Exception):
    """The connection is cut without an answer."""


def bad_parameters(**errors: str) -> PveError:
    """Return a 400 with an `errors` map; underscores in the names stand for dashes."""
    return parameter_errors({name.replace("_", "-"): text for name, text in errors.items()})


def parameter_errors(errors: Mapping[str, str]) -> PveError:
    """Return a 400 "Parameter verification failed." with the given map."""
    return PveError("Parameter verification failed.", 400, errors=errors)


def forbidden(path: str, *privileges: str) -> PveError:
    """Return a 403 that names the path and the privileges; any one of them is enough."""
    return PveError(f"Permission check failed ({path}, {'|'.join(privileges)})", 403)


def unauthorized(text: str) -> PveError:
    """Return a 401 without a body."""
    return PveError(text, 401, body=False)


def not_implemented(method: str, path: str) -> PveError:
    """Return a 501 for a path or method that the API doesn't have."""
    return PveError(f"Method '{method} {path}' not implemented", 501, newline=False)


def no_config(node: str, vmid: int) -> PveError:
    """Return the error of a VM without a configuration file on that node."""
    return PveError(f"Configuration file 'nodes/{node}/qemu-server/{vmid}.conf' does not exist")


def no_configuration_found(node: str, vmid: int) -> PveError:
    """Return the error of calls that look for the VM's process first."""
    return PveError(f"unable to find configuration file for VM {vmid} on node '{node}'")


def no_node(node: str) -> PveError:
    """Return the error of a node name that no resolver knows."""
    return PveError(
        f"hostname lookup '{node}' failed - failed to get address info for: {node}: "
        "Temporary failure in name resolution"
    )


def no_storage(storage: str) -> PveError:
    """Return the error of a storage id that is not configured."""
    return PveError(f"storage '{storage}' does not exist")


def locked(lock: str) -> PveError:
    """Return the error of a locked configuration."""
    return PveError(f"VM is locked ({lock})")


def flock_timeout(path: str) -> PveError:
    """Return the error of a file lock that was not free in time."""
    return PveError(f"can't lock file '{path}' - got timeout")


def read_only(node: str, vmid: int, pid: int) -> PveError:
    """Return the error of writing a configuration without quorum."""
    return PveError(
        f"unable to open file '/etc/pve/nodes/{node}/qemu-server/{vmid}.conf.tmp.{pid}'"
        " - Permission denied"
    )


NO_QUORUM = "cluster not ready - no quorum?"
