"""Eight clients with different actions at one server: each gets 202 or 409, and one wins."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.functional.cloud import eventually
from tests.functional.test_costs import image_id
from tests.functional.test_record import Site

BODIES = [
    *({action: None} for action in ("pause", "unpause", "suspend", "resume")),
    *({"os-stop": None}, {"os-start": None}),
    *({"reboot": {"type": "SOFT"}}, {"reboot": {"type": "HARD"}}),
]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    made.cloud.start()
    try:
        eventually(made.cloud.ready)
        yield made
        assert eventually(made.cloud.audit)["clean"]
    finally:
        made.cloud.stop()


def test_each_action_through_the_api(site: Site) -> None:
    uuid = site.server(image_id(site.folder))
    ends = {"pause": "PAUSED", "unpause": "ACTIVE", "suspend": "SUSPENDED", "resume": "ACTIVE"}
    for action, status in ends.items():
        assert site.act(uuid, {action: None}) == 202
        eventually(lambda status=status: site.show(uuid)["status"] == status)
        assert site.act(uuid, {action: None}) == 409
        events = site.events(uuid, action)
        assert f"compute_{action}_instance" in events
    assert site.actions(uuid)[:4] == ["resume", "suspend", "unpause", "pause"]
    for action in ("pause", "suspend"):
        assert site.act(uuid, {action: None}) == 202
        eventually(lambda: site.show(uuid)["OS-EXT-STS:task_state"] is None)
        assert site.act(uuid, {"reboot": {"type": "HARD"}}) == 202
        eventually(lambda: site.show(uuid)["status"] == "ACTIVE")
    assert site.ask("DELETE", f"/servers/{uuid}").status_code == 204
    eventually(lambda: site.show(uuid) is None)


def test_eight_clients_at_one_server(site: Site) -> None:
    uuid = site.server(image_id(site.folder))
    assert len(BODIES) == 8
    for _ in range(4):
        found = site.together(*(lambda body=body: site.act(uuid, body) for body in BODIES))
        assert set(found) <= {202, 409}, collections.Counter(found)
        assert 202 in found
    eventually(lambda: site.open_operations(uuid) == 0)
    assert site.show(uuid)["OS-EXT-STS:task_state"] is None
    assert site.act(uuid, {"reboot": {"type": "HARD"}}) == 202
    eventually(lambda: site.show(uuid)["status"] == "ACTIVE")
    assert site.ask("DELETE", f"/servers/{uuid}").status_code == 204
    eventually(lambda: site.show(uuid) is None)
