"""`/os-volume-transfer`, and `/volume-transfers` since 3.55: volumes go to other projects."""

from __future__ import annotations

from typing import Any

from api.volume import queries, schemas
from api.volume.call import Call, operation
from api.volume.resources.volumes import find, truth
from api.volume.views import links, moment
from common.errors import Invalid, NotFound
from conductor.rpc.volumes.transfers import NewVolumeTransfer, new_key
from db.reads.volumes import transfers
from db.reads.volumes.block_storage import Filter
from db.reads.volumes.transfers import Transfer

_PAGED_SINCE = 59
_EQUAL = {
    "name": "name",
    "display_name": "name",
    "id": "id",
    "volume_id": "volume_id",
    "source_project_id": "source_project_id",
}


class Transfers:
    """Transfers of volumes."""

    @operation("volume:get_all_transfers")
    def index(self, call: Call) -> Any:
        """List the transfers of the project's volumes."""
        return self._listed(call, _brief)

    @operation("volume:get_all_transfers")
    def detail(self, call: Call) -> Any:
        """List them in detail."""
        return self._listed(call, _view)

    @staticmethod
    def _listed(call: Call, view: Any) -> Any:
        everybody = call.is_admin and call.query.boolean("all_tenants")
        page, offset = queries.page(call)
        order = [("created_at", False)]
        if call.version >= _PAGED_SINCE:
            asked = queries.order(call, transfers.SORTABLE)
            order = asked or [("created_at", True)]
        wanted = Filter(None if everybody else call.project, queries.equal(call, _EQUAL))
        found = call.read(transfers.listing, wanted, order, page, offset)
        listed = [view(call, one) for one in found]
        return queries.shown(call, "os-volume-transfer", listed, page, "transfers")

    @operation("volume:get_transfer")
    def show(self, call: Call, transfer_id: str) -> Any:
        """Show a transfer of one of the project's volumes."""
        return {"transfer": _view(call, _find(call, transfer_id))}

    @operation(asks=("volume:create_transfer",), status=202, body=schemas.TRANSFER)
    def create(self, call: Call) -> Any:
        """Offer a volume to who knows the key in the answer, which is shown once."""
        return self._offered(call)

    @operation(asks=("volume:create_transfer",), status=202, body=schemas.OLD_TRANSFER)
    def create_with_snapshots(self, call: Call) -> Any:
        """Offer a volume with its snapshots, as `/os-volume-transfer` does in every version."""
        return self._offered(call)

    @staticmethod
    def _offered(call: Call) -> Any:
        asked = call.body["transfer"]
        find(call, asked["volume_id"], "volume:create_transfer")
        name = asked.get("name")
        new = NewVolumeTransfer(
            asked["volume_id"],
            None if name is None else _name(name),
            no_snapshots=truth(asked.get("no_snapshots", False)),
            auth_key=new_key(),
        )
        made = call.conductor.create_volume_transfer(call.ctxt, new)
        shown = _view(call, _find(call, made.transfer_id))
        return {"transfer": {**shown, "auth_key": made.auth_key or new.auth_key}}

    @operation("volume:accept_transfer", status=202, body=schemas.ACCEPT_TRANSFER)
    def accept(self, call: Call, transfer_id: str) -> Any:
        """Make a volume that is offered the project's own."""
        auth_key = str(call.body["accept"]["auth_key"])
        call.conductor.accept_volume_transfer(call.ctxt, transfer_id, auth_key)
        found = call.read(transfers.known, transfer_id, call.project)
        if found is None:
            raise _missing(transfer_id)
        return {"transfer": _brief(call, found)}

    @operation(asks=("volume:delete_transfer",), status=202)
    def delete(self, call: Call, transfer_id: str) -> None:
        """End a transfer; its volume is available again."""
        found = _find(call, transfer_id)
        find(call, found.volume_id, "volume:delete_transfer")
        call.conductor.delete_volume_transfer(call.ctxt, transfer_id)


def _find(call: Call, transfer_id: str) -> Transfer:
    found = call.read(transfers.get, transfer_id, call.reach)
    if found is None:
        raise _missing(transfer_id)
    return found


def _missing(transfer_id: str) -> NotFound:
    return NotFound(f"Transfer {transfer_id} could not be found.")


def _name(text: str) -> str:
    """Return a name without the spaces around it. Raises Invalid where nothing is left."""
    if not text.strip():
        raise Invalid("Invalid input received: name must not be blank.")
    return text.strip()


def _brief(call: Call, one: Transfer) -> dict[str, Any]:
    """Return a transfer in a list without details."""
    return {
        "id": one.id,
        "volume_id": one.volume_id,
        "name": one.name,
        "links": links(call, "os-volume-transfer", one.id),
    }


def _view(call: Call, one: Transfer) -> dict[str, Any]:
    """Return a transfer with its details."""
    shown = {**_brief(call, one), "created_at": moment(one.created_at)}
    later: tuple[tuple[int, str, Any], ...] = (
        (55, "no_snapshots", one.no_snapshots),
        (57, "source_project_id", one.source_project_id),
        (57, "destination_project_id", one.destination_project_id),
        (57, "accepted", one.accepted),
    )
    return shown | {name: value for since, name, value in later if call.version >= since}
