"""The RPC surface of a compute worker, and of the agents that it carries: one method a row."""

from __future__ import annotations

from typing import Protocol

from common.context import RequestContext
from common.messages.commands import (
    Build,
    CacheImage,
    Copy,
    Destroy,
    EndSwap,
    Grow,
    Mark,
    Move,
    Plug,
    Power,
    RemoveImage,
    RetireTemplate,
    Shape,
    StoreImage,
    StrictGroup,
    Swap,
)
from common.messages.consoles import ConsoleTarget, OpenConsole
from common.messages.facts import HaService, Inspection
from common.messages.filters import Filter, FilterCheck, Filtered
from common.messages.guests import Diagnostics, GuestTarget, PasswordProblem, SetPassword
from compute.messages import ClusterInventory


class WorkerRpc(Protocol):
    """Topic ``compute``, server: the worker's name. ``ComputeClient`` documents the methods."""

    # Casts: a command's answer comes as reports.
    def build(self, ctxt: RequestContext, command: Build) -> None: ...
    def destroy(self, ctxt: RequestContext, command: Destroy) -> None: ...
    def power(self, ctxt: RequestContext, command: Power) -> None: ...
    def shape(self, ctxt: RequestContext, command: Shape) -> None: ...
    def grow(self, ctxt: RequestContext, command: Grow) -> None: ...
    def move(self, ctxt: RequestContext, command: Move) -> None: ...
    def plug(self, ctxt: RequestContext, command: Plug) -> None: ...
    def swap(self, ctxt: RequestContext, command: Swap) -> None: ...
    def end_swap(self, ctxt: RequestContext, command: EndSwap) -> None: ...
    def copy(self, ctxt: RequestContext, command: Copy) -> None: ...
    def mark(self, ctxt: RequestContext, command: Mark) -> None: ...
    def cache_image(self, ctxt: RequestContext, command: CacheImage) -> None: ...
    def retire_template(self, ctxt: RequestContext, command: RetireTemplate) -> None: ...
    def store_image(self, ctxt: RequestContext, command: StoreImage) -> None: ...
    def remove_image(self, ctxt: RequestContext, command: RemoveImage) -> None: ...

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
