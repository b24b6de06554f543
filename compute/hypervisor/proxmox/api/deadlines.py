"""How long tasks of Proxmox VE may take, by kind."""

from __future__ import annotations

from collections.abc import Mapping

#: Seconds that a task of a kind may take. Then its outcome is unknown, and it is probed; the task
#: itself is left to end. What moves data may take long, what only switches may not. The deadline
#: of the operation ends the waiting in any case.
DEADLINES: Mapping[str, float] = {
    "qmcreate": 3600.0,
    "qmclone": 3600.0,
    "qmtemplate": 300.0,
    "qmconfig": 120.0,
    "resize": 300.0,
    "qmstart": 180.0,
    "qmstop": 120.0,
    "qmshutdown": 3720.0,
    "qmreboot": 3720.0,
    "qmdestroy": 600.0,
    "qmigrate": 7200.0,
    "imgcopy": 600.0,
    "imgdel": 600.0,
}
OTHER_DEADLINE = 600.0
