"""The door of the in-process message bus: what oslo.messaging's entry point names."""

from __future__ import annotations

from common.localbus import LocalDriver

__all__ = ["LocalDriver"]
