"""Tasks of a node, as Proxmox VE lists them."""

from __future__ import annotations

import datetime
from typing import Any, cast

from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.inspect import task_list

_ENDED = {
    **{"upid": "UPID:pve1:1", "type": "vzdump", "id": "", "user": "root@pam", "starttime": 10},
    **{"endtime": 20, "status": "job errors"},
}
_RUNS = {
    **{"upid": "UPID:pve1:2", "type": "qmcreate", "id": "100", "starttime": 5},
    **{"user": "micronova@pve!agent", "status": "RUNNING"},
}


class Listing:
    """Answers with tasks."""

    def get(self, path: str, **query: Any) -> Any:
        assert (path, query) == ("nodes/pve1/tasks", {"source": "all", "limit": 5})
        return [_ENDED, {**_ENDED, "starttime": 15, "tokenid": "ci", "status": "OK"}, _RUNS]


def test_those_that_run_come_first_then_the_newest() -> None:
    found = task_list.read(cast("Client", Listing()), "pve1", 5)
    assert [(one.kind, one.user, one.result) for one in found] == [
        ("qmcreate", "micronova@pve!agent", None),
        ("vzdump", "root@pam!ci", "OK"),
        ("vzdump", "root@pam", "job errors"),
    ]
    assert found[0].finished_at is None
    assert found[2].finished_at == datetime.datetime.fromtimestamp(20, datetime.UTC)
