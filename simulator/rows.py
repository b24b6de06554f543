"""A row of the table of calls: method, path, flags, handler, permission, parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from simulator.call import Call
from simulator.params import Param

Handler = Callable[[Call], Any]
Permission = tuple[str, ...] | str
# Flags: p = privileged daemon, n = answered by the node in the path, t = not with a token,
# v = takes every option of a VM, 9 = since version 9.
Row = tuple[str, str, str, Handler, Permission, Mapping[str, Param]]

PUBLIC = "public"
AUTHENTICATED = "user"
