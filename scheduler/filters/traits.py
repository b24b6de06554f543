"""Has the host what flavor and image ask for by name: traits, and capabilities?"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from common.messages.facts import HostFacts
from common.messages.scheduling import Requested
from scheduler.filters.resources import needs
from scheduler.filters.specs import compiled
from scheduler.hosts import Host


def traits(host: Host, request: Requested) -> str | None:
    """Refuse hosts that lack a required trait or have a forbidden one."""
    needed = needs(request)
    missing = sorted(needed.required - host.traits)
    if missing:
        return f"without {', '.join(missing)}"
    unwanted = sorted(needed.forbidden & host.traits)
    return f"with {', '.join(unwanted)}" if unwanted else None


_SCOPE = "capabilities:"
#: capability → what the host has of it; Nova's names (ComputeCapabilitiesFilter)
_CAPABILITIES: Mapping[str, Callable[[HostFacts], str]] = {
    "hypervisor_type": lambda facts: facts.hypervisor_type,
    "hypervisor_version": lambda facts: facts.hypervisor_version,
    "hypervisor_hostname": lambda facts: facts.host,
    "cpu_info:arch": lambda facts: facts.architecture,
    "cpu_info:model": lambda facts: facts.cpu_model,
    "cpu_info:vendor": lambda facts: facts.cpu_vendor,
    "cpu_info:features": lambda facts: str(list(facts.cpu_flags)),
    "cpu_info:topology:cores": lambda facts: str(facts.cpu_cores),
    "cpu_info:topology:sockets": lambda facts: str(facts.cpu_sockets),
    "vcpus_total": lambda facts: str(facts.vcpus),
}


def capabilities(host: Host, request: Requested) -> str | None:
    """Refuse hosts that don't match the extra specs ``capabilities:…``.

    Without the scope a key counts only if it names a capability, as in Nova.
    """
    for key, wanted in request.extra_specs.items():
        name = key.removeprefix(_SCOPE)
        have = _CAPABILITIES.get(name)
        if have is None:
            if key.startswith(_SCOPE):
                return f"{name} is not known of any host"
            continue
        value = have(host.facts)
        if not compiled(wanted)(value):
            return f"{name} is {value or 'unknown'}, '{wanted}' asked"
    return None
