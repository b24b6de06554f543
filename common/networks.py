"""The network that the cloud chooses where a user names none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from oslo_config import cfg

from common.errors import Conflict

AUTO = cfg.StrOpt(
    "auto",
    help="The network of servers whose user names none, or asks for `auto`: its bridge. Without "
    "it that is the only network there is; where there are several, users must name one.",
)


class Network(Protocol):
    """What is chosen by."""

    @property
    def bridge(self) -> str:
        """The bridge that it is."""


N = TypeVar("N", bound=Network)


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the option in `[networks]`; idempotent."""
    conf.register_opt(AUTO, group="networks")


def chosen(known: Sequence[N], auto: str | None) -> N | None:
    """Return the network that is meant, None where there is none.

    ``auto`` is the option. Raises Conflict, in Nova's words, where several could be meant.
    """
    if auto:
        return next((one for one in known if one.bridge == auto), None)
    if len(known) > 1:
        raise Conflict("Multiple possible networks found, use a Network ID to be more specific.")
    return next(iter(known), None)
