"""The RPC surface of a compute worker, and of the agents that it carries: one method a row."""

from __future__ import annotations

from typing import Protocol

from common.context import RequestContext
from common.messages.commands import Command, StrictGroup
from common.messages.consoles import ConsoleTarget, OpenConsole
from common.messages.facts import HaService, Inspection, OtherVm
from common.messages.filters import Filter, FilterCheck, Filtered
from common.messages.guests import Diagnostics, GuestTarget, PasswordProblem, SetPassword
from compute.messages import ClusterInventory


class WorkerRpc(Protocol):
    """Topic ``compute``, server: the worker's name. ``ComputeClient`` documents the methods."""

    # A cast: the command's outcome comes as a report.
    def execute(self, ctxt: RequestContext, command: Command) -> None: ...
    # Casts without an answer.
    def introduce(self, ctxt: RequestContext) -> None: ...
    def remove_group_rules(
        self, ctxt: RequestContext, cluster: str, cloud: str, group: str
    ) -> None: ...
    def tick(self, ctxt: RequestContext) -> None: ...

    # Calls.
    def inspect(
        self,
        ctxt: RequestContext,
        cluster: str,
        vmid: int,
        node: str | None,
        server_uuid: str | None,
    ) -> Inspection: ...
    def ha_service(self, ctxt: RequestContext, cluster: str, vmid: int) -> HaService | None: ...
    def steer_migration(
        self,
        ctxt: RequestContext,
        cluster: str,
        vmid: int,
        node: str,
        server_uuid: str,
        abort: bool,
    ) -> str | None: ...
    def console_problem(self, ctxt: RequestContext, target: ConsoleTarget) -> str | None: ...
    def open_console(self, ctxt: RequestContext, order: OpenConsole) -> None: ...
    def console_log(self, ctxt: RequestContext, server_uuid: str) -> str | None: ...
    def diagnose(self, ctxt: RequestContext, target: GuestTarget) -> Diagnostics: ...
    def converge_filter(
        self, ctxt: RequestContext, target: GuestTarget, wanted: Filter
    ) -> Filtered: ...
    def check_filter(
        self, ctxt: RequestContext, target: GuestTarget, wanted: Filter
    ) -> FilterCheck: ...
    def set_password(self, ctxt: RequestContext, order: SetPassword) -> PasswordProblem | None: ...
    def look_at_others(
        self, ctxt: RequestContext, cluster: str, wanted: list[OtherVm]
    ) -> list[OtherVm]: ...
    def inventory(
        self, ctxt: RequestContext, cluster: str, known: list[int], read: list[int]
    ) -> ClusterInventory: ...
    def converge_affinity(
        self,
        ctxt: RequestContext,
        cluster: str,
        cloud: str,
        group: StrictGroup,
        members: list[tuple[int, str]],
    ) -> None: ...
