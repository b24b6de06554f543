"""Filters by traits and capabilities that flavor and image require."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from common.guest.spec_operators import Predicate, compiled
from common.messages.scheduling import RequestSpec
from scheduler.columnar.forms import refusing
from scheduler.columnar.reasons import Codes
from scheduler.filters import host_filter
from scheduler.filters.resources import needs
from scheduler.filters.specs import compiled_version
from scheduler.filters.storage import root_storage
from scheduler.hosts.columns import HostColumns, Mask
from scheduler.hosts.host import Host


def _unfit(columns: HostColumns, request: RequestSpec) -> Mask | None:
    needed = needs(request)
    if not needed.required and not needed.forbidden:
        return None
    return columns.with_traits(
        lambda there: bool(needed.required - there or needed.forbidden & there)
    )


@host_filter(after="resources", words="not the traits")
@refusing(_unfit, same_reason=lambda columns, request: [columns.trait_codes])
def traits(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts that lack a required trait or have a forbidden one."""
    needed = needs(request)
    missing = sorted(needed.required - host.traits)
    if missing:
        return f"without {', '.join(missing)}"
    unwanted = sorted(needed.forbidden & host.traits)
    return f"with {', '.join(unwanted)}" if unwanted else None


def _yes(true: bool) -> str:
    return "true" if true else "false"


def _storage_type(host: Host) -> str:
    storage = root_storage(host)
    return storage.type if storage is not None else ""


def _storage_shared(host: Host) -> str:
    storage = root_storage(host)
    return _yes(storage is not None and storage.shared)


_SCOPE = "capabilities:"
#: capability → the host's value; Nova's names (ComputeCapabilitiesFilter)
_CAPABILITIES: Mapping[str, Callable[[Host], str]] = {
    "hypervisor_type": lambda host: host.facts.hypervisor_type,
    "hypervisor_version": lambda host: host.facts.hypervisor_version,
    "hypervisor_hostname": lambda host: host.facts.host,
    "cpu_info:arch": lambda host: host.facts.architecture,
    "cpu_info:model": lambda host: host.facts.cpu_model,
    "cpu_info:vendor": lambda host: host.facts.cpu_vendor,
    "cpu_info:features": lambda host: str(list(host.facts.cpu_flags)),
    "cpu_info:topology:cores": lambda host: str(host.facts.cpu_cores),
    "cpu_info:topology:sockets": lambda host: str(host.facts.cpu_sockets),
    "vcpus_total": lambda host: str(host.facts.vcpus),
    # of the storage of root disks; not Nova's
    "storage:type": _storage_type,
    "storage:shared": _storage_shared,
    "storage:snapshots": lambda host: _yes(host.facts.capabilities.get("snapshots", False)),
}
#: capability → how it is compared, if not as usual
_COMPARED: Mapping[str, Callable[[str], Predicate]] = {"hypervisor_version": compiled_version}


def _asked(request: RequestSpec) -> Iterator[tuple[str, str, Callable[[Host], str] | None]]:
    """Yield capabilities and the required values; a key without the scope counts only if it is the
    name of one, as in Nova."""
    for key, wanted in request.extra_specs.items():
        name = key.removeprefix(_SCOPE)
        if name in _CAPABILITIES or key.startswith(_SCOPE):
            yield name, wanted, _CAPABILITIES.get(name)


def _incapable(columns: HostColumns, request: RequestSpec) -> Mask | None:
    refused = None
    for name, wanted, have in _asked(request):
        if have is None:
            return np.ones(len(columns), np.bool_)
        unfit = ~columns.where(have, _COMPARED.get(name, compiled)(wanted))
        refused = unfit if refused is None else refused | unfit
    return refused


def _of_capabilities(columns: HostColumns, request: RequestSpec) -> Iterable[Codes]:
    return [columns.codes(have) for _, _, have in _asked(request) if have is not None]


@host_filter(after="traits", words="other capabilities than the flavor asks")
@refusing(_incapable, same_reason=_of_capabilities)
def capabilities(host: Host, request: RequestSpec) -> str | None:
    """Refuse hosts that don't match the extra specs ``capabilities:…``."""
    for name, wanted, have in _asked(request):
        if have is None:
            return f"{name} is not known of any host"
        value = have(host)
        if not _COMPARED.get(name, compiled)(wanted)(value):
            return f"{name} is {value or 'unknown'}, '{wanted}' asked"
    return None
