"""`/explanations/{subject}`: histories from the ledger.

This resource is micronova's own. Owners see what happened and what it means for them;
administrators also see hosts, reasons, numbers, tasks and logs.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.own.waiting import shown
from api.compute.views import explanations as views
from api.compute.views.hosts import is_up, trouble
from common import ids, moving
from common.errors import NotFound
from common.resources.states import ResourceType
from db.reads.hosts import hosts
from db.reads.images import images
from db.reads.ledger import operations, refusals, waiting
from db.reads.ledger.operations import Story
from db.reads.networks import networks
from db.reads.volumes import snapshots, transfers, volumes


class Explanations:
    """Histories by request ID, global request ID, or the UUID of a server or another resource.

    Ports, volumes, their snapshots and transfers, and images have them; so have refused requests,
    and what was deleted, other than ports.
    """

    @operation(policies.EXPLAIN)
    def show(self, call: Call, subject: str) -> Any:
        """Explain a request or a resource; only administrators see other projects'."""
        named = str(uuid.UUID(subject)) if ids.is_uuid(subject) else subject
        project = call.reach
        operator = call.allows(policies.EXPLAIN_ALL)
        found = call.read(operations.stories, named, project, limit=call.max_limit)
        refused = call.read(refusals.named, named, project, limit=call.max_limit)
        about: dict[str, Any] = {}
        if operator and not named.startswith("req-"):
            about = _move(call, named)
        if not found and not refused and ids.is_uuid(named):
            about, found = _other(call, named, project, operator=operator)
        if not found and not refused and not about:
            raise NotFound(
                f"Nothing is known under {subject}. Kept is what was done to servers, volumes, "
                "snapshots and images, and the newest refused requests."
            )
        return {
            "explanation": {
                "subject": named,
                **_host(call, found, operator=operator),
                **about,
                "operations": [
                    *(views.refusal(one, operator=operator) for one in refused),
                    *_stories(call, found, operator=operator),
                ],
            }
        }


def _stories(call: Call, found: Sequence[Story], *, operator: bool) -> Iterator[dict[str, Any]]:
    """Yield the operations, those that wait for room with their place among all."""
    queued = [one.operation.id for one in found if views.may_wait_for_room(one.operation)]
    placed = list(call.read(waiting.of_operations, queued).values()) if queued else []
    wait = {
        one.operation_id: view
        for one, view in zip(placed, shown(call, placed, operator=operator), strict=True)
    }
    for story in found:
        view, its = views.story(story, operator=operator), wait.get(story.operation.id)
        if its is not None:
            view["waiting"] = its
            view["message"] = story.operation.message
        yield view


About = tuple[dict[str, Any], list[Story]]


def _other(call: Call, named: str, project: str | None, *, operator: bool) -> About:
    """Return the current state of the first other resource with this ID, and its operations."""
    for find in (_port, _volume, _snapshot, _transfer, _image):
        about, found = find(call, named, project, operator=operator)
        if about or found:
            return about, found
    return {}, []


def _port(call: Call, named: str, project: str | None, *, operator: bool) -> About:
    """Explain a port by what was done to its server."""
    ports = call.read(networks.list_ports, {"id": [named]})
    if not ports or project not in (None, ports[0].project_id):
        return {}, []
    port = ports[0]
    server = port.server_uuid
    limit = call.max_limit
    found = call.read(operations.stories, server, project, limit=limit) if server else []
    return {"port": views.port(port, operator=operator)}, found


def _volume(call: Call, named: str, project: str | None, *, operator: bool) -> About:
    volume = call.read(volumes.get, named, project)
    found = call.read(operations.stories_of_volume, named, project, limit=call.max_limit)
    return ({"volume": views.volume(volume, operator=operator)} if volume else {}), found


def _snapshot(call: Call, named: str, project: str | None, *, operator: bool) -> About:
    snapshot = call.read(snapshots.get, named, project)
    limit, kind = call.max_limit, ResourceType.SNAPSHOT
    found = call.read(operations.stories, named, project, limit=limit, kind=kind)
    return ({"snapshot": views.snapshot(snapshot, operator=operator)} if snapshot else {}), found


def _transfer(call: Call, named: str, project: str | None, *, operator: bool) -> About:
    """Explain a transfer by what was done to its volume."""
    transfer = call.read(transfers.known, named, project)
    if transfer is None:
        return {}, []
    limit, volume_id = call.max_limit, transfer.volume_id
    found = call.read(operations.stories_of_volume, volume_id, project, limit=limit)
    return {"transfer": views.transfer(transfer)}, found


def _image(call: Call, named: str, project: str | None, *, operator: bool) -> About:
    image = call.read(images.get, named, project)
    limit, kind = call.max_limit, ResourceType.IMAGE
    found = call.read(operations.stories, named, project, limit=limit, kind=kind)
    return ({"image": views.image(image)} if image is not None else {}), found


def _host(call: Call, found: Sequence[Story], *, operator: bool) -> dict[str, Any]:
    """Return why the host of the newest story's server can't be used; nothing where it can.

    Owners read only that the host doesn't answer.
    """
    uuids = (story.operation.server_uuid for story in reversed(found))
    server_uuid = next((uuid for uuid in uuids if uuid), None)
    host = call.read(hosts.of_server, server_uuid) if server_uuid else None
    seconds = call.cloud.conf.api.service_down_seconds
    why = trouble(host, seconds) if host else None
    if host is None or why is None:
        return {}
    state = "up" if is_up(host, seconds) else "down"
    if operator:
        return {"host": {"name": host.host, "state": state, "health": why}}
    if state == "up":
        return {}
    return {"host": {"name": None, "state": state, "health": views.HOST_DOWN}}


def _move(call: Call, server_uuid: str) -> dict[str, Any]:
    """Return how a server could be moved now, or why it can't; {} if it no longer exists."""
    now = call.read(hosts.situation, server_uuid)
    if now is None:
        return {}
    return {"move": {"way": moving.way(now), "obstacle": moving.obstacle(now)}}
