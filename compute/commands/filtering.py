"""The step that writes the packet filter of a VM's interfaces."""

from __future__ import annotations

from common.messages.filters import Filter
from compute.commands.steps import Step
from compute.hypervisor.port import Machine


def filtered(machine: Machine, filter_: Filter | None) -> tuple[Step, ...]:
    """Return the step that writes the filter; no step where interfaces are not filtered."""
    if filter_ is None:
        return ()
    return (Step("compute_write_filter", lambda: machine.write_filter(filter_)),)
