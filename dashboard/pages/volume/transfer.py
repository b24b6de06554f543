"""A volume that is given to another project: offered here, accepted there by a key."""

from __future__ import annotations

from dashboard.answer import Answer, Redirect, view
from dashboard.cloud import VOLUME, segment
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit


def ask_offer(visit: Visit) -> Answer:
    """Ask whether a volume is to be offered."""
    return view("volume/offer.html", volume=visit.cloud.get(VOLUME, _volume(visit))["volume"])


def offer(visit: Visit) -> Answer:
    """Offer a volume; the page that follows is the only one with its key."""
    asked = {"volume_id": visit.params["volume_id"], "name": visit.field("name") or None}
    made = visit.changed(visit.cloud.post, VOLUME, "/volume-transfers", {"transfer": asked})
    if made is None:
        return Redirect(_volume(visit))
    return view("volume/offered.html", transfer=made["transfer"])


def ask_accept(visit: Visit) -> Answer:
    """Ask for the ID and the key of an offer."""
    return view("volume/accept.html", given=visit.query.get("transfer", ""))


def accept(visit: Visit) -> Answer:
    """Take a volume that another project offers."""
    path = f"/volume-transfers/{segment(visit.field('transfer') or '-')}/accept"
    body = {"accept": {"auth_key": visit.field("auth_key")}}
    said = "The volume is this project's."
    return visit.change("/volumes", said, visit.cloud.post, VOLUME, path, body)


def cancel(visit: Visit) -> Answer:
    """End an offer: its key is worth nothing any more."""
    path = f"/volume-transfers/{segment(visit.params['transfer_id'])}"
    said = "The offer is cancelled."
    return visit.change(_volume(visit), said, visit.cloud.delete, VOLUME, path)


def _volume(visit: Visit) -> str:
    return f"/volumes/{segment(visit.params['volume_id'])}"


_VOLUME = "/volumes/{volume_id:uuid}"
PAGES = (
    Page("/volumes/accept", ask_accept, May.CHANGE, calls=0),
    Page("/volumes/accept", accept, May.CHANGE, "POST"),
    Page(f"{_VOLUME}/transfer", ask_offer, May.CHANGE),
    Page(f"{_VOLUME}/transfer", offer, May.CHANGE, "POST"),
    Page(f"{_VOLUME}/transfers/{{transfer_id:uuid}}/cancel", cancel, May.CHANGE, "POST"),
)
