"""The entry point of the in-process message bus, for oslo.messaging."""

from __future__ import annotations

from common.rpc.localbus import LocalDriver

__all__ = ["LocalDriver"]
