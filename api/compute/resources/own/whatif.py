"""`/schedule`, `/capacity`, `/evacuations/{host}`, `/rebalance`: what would happen.

Nothing is changed. These resources are micronova's own, for administrators.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from api.compute import policies
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.servers.create import create_request, home, least_disk_gib, snapshot
from api.compute.schemas import servers as server_schemas
from api.compute.schemas import whatif as schemas
from api.compute.views.explanations import refusals
from common import codec, digits
from common.errors import FlavorNotFound, ImageNotFound, Invalid, NotFound
from common.resources.local_disks import of_server
from conductor.rpc.servers.servers import CreateServers, RequestedNetwork
from db.reads.images import images
from db.reads.servers import flavors

#: the default and the maximum number of proposed moves
_MOVES = 10
MAX_MOVES = 100


class Schedule:
    """A dry run of a create's scheduling."""

    @operation(
        policies.PREVIEW,
        body=server_schemas.CREATE,
        query=schemas.SCHEDULE,
        errors={NotFound: Invalid},
    )
    def preview(self, call: Call) -> Any:
        """Schedule a `POST /servers` without creating; `without` names hosts to leave out."""
        decisions = call.conductor.preview_servers(call.ctxt, create_request(call), _without(call))
        return {"schedule": {"decisions": [_decision(item) for item in decisions]}}


class CapacityLeft:
    """How many more servers of a flavor fit."""

    @operation(policies.CAPACITY, query=schemas.CAPACITY, errors={NotFound: Invalid})
    def show(self, call: Call) -> Any:
        """Show how many more servers fit, in total and by host, and what limits them."""
        found = call.conductor.capacity(call.ctxt, _kind(call), _without(call))
        hosts = [dataclasses.asdict(fit) for fit in found.fits]
        return {"capacity": {"total": found.total, "hosts": hosts}}


class Evacuations:
    """Where the servers of a host would go if it failed."""

    @operation(policies.CAPACITY)
    def show(self, call: Call, host: str) -> Any:
        """Show a decision for each server of a host."""
        found = call.conductor.evacuation(call.ctxt, host)
        servers = [
            {
                "server": item.server_uuid,
                "name": item.name,
                "kept": item.kept or None,
                **_decision(item.decision),
            }
            for item in found
        ]
        fits = all(item.decision.host is not None and not item.kept for item in found)
        return {"evacuation": {"host": host, "fits": fits, "servers": servers}}


class Rebalance:
    """Migrations that would balance the hosts."""

    @operation(policies.REBALANCE, query=schemas.REBALANCE)
    def show(self, call: Call) -> Any:
        """Propose up to `limit` migrations, with the score before and after; nothing moves."""
        limit = digits.number(call.query.last("limit") or str(_MOVES), MAX_MOVES)
        plan = dataclasses.asdict(call.conductor.rebalance(call.ctxt, limit or 0))
        for one in (*plan["moves"], *plan["pinned"]):
            one["server"] = one.pop("server_uuid")
        return {"rebalance": plan}


def _kind(call: Call) -> CreateServers:
    """Return the request spec of one such server, as a create would make it."""
    flavor_id, image_id = str(call.query.last("flavor")), call.query.last("image")
    flavor = call.read(flavors.find, flavor_id, None)
    if flavor is None:
        raise FlavorNotFound(f"Flavor {flavor_id} could not be found.")
    image = None if image_id is None else call.read(images.get, image_id, None)
    if image_id is not None and image is None:
        raise ImageNotFound(f"Image {image_id} could not be found.")
    properties = image.properties if image else {}
    return CreateServers(
        name=flavor.name,
        flavor=snapshot(flavor, of_server(flavor.ephemeral_gib, flavor.swap_mib)),
        image_id=image.id if image else "",
        image_properties={key: str(value) for key, value in properties.items()},
        least_disk_gib=least_disk_gib(image) if image else 0,
        image_home=home(image) if image else None,
        networks=tuple(RequestedNetwork(network) for network in call.query.get("network", ())),
        availability_zone=call.query.last("availability_zone"),
    )


def _without(call: Call) -> tuple[str, ...]:
    return tuple(call.query.get("without", ()))


def _decision(decision: Any) -> dict[str, Any]:
    plain = refusals(codec.loads(codec.dumps(decision)))
    # They have no meaning where nothing was claimed for a server that isn't there.
    return {key: plain[key] for key in plain if key not in ("server_uuid", "claims", "seconds")}
