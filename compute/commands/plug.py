"""Plug: a VM gets an interface, or loses one; if it refuses, nothing is changed."""

from __future__ import annotations

from common.messages.commands import Plug
from common.messages.filters import Filter
from common.messages.reports import Category, VmSeen
from compute.commands.filtering import filtered
from compute.commands.job import Job
from compute.commands.steps import Step, carry_out
from compute.commands.vm_steps import seen
from compute.hypervisor.port import Detail, HypervisorError, Machine, Removal


def plug(job: Job, machine: Machine, command: Plug) -> VmSeen:
    """Run the steps; the outcome has the last power state seen."""
    find = Step("compute_find_vm", lambda: _find(machine, command))
    if command.on:
        step = Step(
            "compute_attach_interface",
            lambda: machine.plug(command),
            lambda: _unplug(machine, command),
            "compute_detach_interface",
        )
    else:
        step = Step("compute_detach_interface", lambda: _detach(machine, command))
    # The filter is written first: a filtered interface that has no rules yet passes nothing, and
    # the firewall must know beforehand that the interface is filtered.
    before = filtered(machine, command.filter) if command.on else ()
    after = _after(machine, command)
    failure = carry_out(job, (find, *before, step, *after))
    return VmSeen(failure is None, failure, seen(machine))


def _find(machine: Machine, command: Plug) -> Detail:
    detail = machine.find()
    if machine.absent and command.on:
        raise HypervisorError(Category.VANISHED, "The server has no VM.")
    return detail


def _after(machine: Machine, command: Plug) -> tuple[Step, ...]:
    """Return the step that writes the filter once the interface is plugged, or unplugged."""

    def write(filter_: Filter) -> Detail:
        return {"absent": True} if machine.absent else machine.write_filter(filter_)

    wanted = command.filter
    return () if wanted is None else (Step("compute_write_filter", lambda: write(wanted)),)


def _detach(machine: Machine, command: Plug) -> Detail:
    return {"absent": True} if machine.absent else machine.unplug(command.nic.mac)


def _unplug(machine: Machine, command: Plug) -> Removal:
    mac = command.nic.mac
    machine.unplug(mac)
    return Removal(True, (f"interface {mac}",))
