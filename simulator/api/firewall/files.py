"""The firewall file that a call is about."""

from __future__ import annotations

from simulator.errors import PveError
from simulator.request.call import Call
from simulator.state.firewall_config import Firewall

CHANGED = "detected modified configuration - file changed by other user? Try again."


def key_of(call: Call) -> str:
    """Return the key of the file that a call is about, by its path."""
    if call.path.startswith("/cluster/"):
        return "cluster"
    return f"vm/{call.vmid}" if "vmid" in call.params else f"node/{call.node}"


def read(call: Call) -> Firewall:
    """Return the file that a call is about; an empty one if there is none."""
    key = key_of(call)
    return call.cluster.firewalls.get(key) or Firewall(key)


def write(call: Call) -> Firewall:
    """Return a call's file for writing: created if missing, saved when the mutex is released.

    Raises 500 if the caller's digest is not the file's.
    """
    found = read(call)
    if call.get("digest", found.digest()) != found.digest():
        raise PveError(CHANGED)
    call.cluster.firewalls[found.key] = found
    call.cluster.save("firewall", found.key, found)
    return found
