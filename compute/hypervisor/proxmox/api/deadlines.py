"""Time limits of Proxmox VE's tasks, by kind."""

from __future__ import annotations

from collections.abc import Mapping

#: Seconds that a task of a kind may take. After that its outcome is unknown, and the task is
#: left to end. Tasks that move data may take long, others may not. The operation's deadline
#: ends the wait in any case.
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
    "qmsuspend": 3600.0,
    "qmresume": 3600.0,
    "qmdestroy": 600.0,
    "qmigrate": 7200.0,
    "qmmove": 7200.0,
    "imgcopy": 7200.0,
    "imgdel": 600.0,
    # A node makes one backup at a time: one of ours may wait for somebody's.
    "vzdump": 43_200.0,
    "qmrestore": 7200.0,
}
OTHER_DEADLINE = 600.0
