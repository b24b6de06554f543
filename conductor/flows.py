"""Every flow of the conductor, by the action that begins it."""

from __future__ import annotations

from common.states import Happening
from conductor.adopt import Adopt
from conductor.cloud import Cloud
from conductor.create import Create
from conductor.delete import Delete
from conductor.follow import Follow
from conductor.forget import Forget
from conductor.power import COMMANDS, PowerFlow
from conductor.reap import Reap
from conductor.release import Release
from conductor.remark import Remark
from conductor.runner import Flow


def flows(cloud: Cloud) -> dict[str, Flow]:
    """Action → flow."""
    found: dict[str, Flow] = dict.fromkeys(COMMANDS, PowerFlow(cloud))
    return found | {
        "create": Create(cloud),
        "delete": Delete(cloud),
        "adopt": Adopt(cloud),
        "release": Release(cloud),
        Happening.REAP: Reap(cloud),
        Happening.FOLLOW: Follow(cloud),
        Happening.FORGET: Forget(cloud),
        Happening.MARK: Remark(cloud),
    }
