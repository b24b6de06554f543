"""Every flow of the conductor, by the action that begins it."""

from __future__ import annotations

from common.states import InternalAction
from conductor.cloud import Cloud
from conductor.engine.runner import Flow
from conductor.flows.abandon import Forget
from conductor.flows.adopt import Adopt
from conductor.flows.create import Create
from conductor.flows.delete import Delete
from conductor.flows.mark import Remark
from conductor.flows.power import COMMANDS, PowerFlow
from conductor.flows.reap import Reap
from conductor.flows.unmanage import Release
from conductor.sync.relocation import Follow


def flows(cloud: Cloud) -> dict[str, Flow]:
    """Action → flow."""
    found: dict[str, Flow] = dict.fromkeys(COMMANDS, PowerFlow(cloud))
    return found | {
        "create": Create(cloud),
        "delete": Delete(cloud),
        "adopt": Adopt(cloud),
        "release": Release(cloud),
        InternalAction.REAP: Reap(cloud),
        InternalAction.FOLLOW: Follow(cloud),
        InternalAction.FORGET: Forget(cloud),
        InternalAction.MARK: Remark(cloud),
    }
