"""Images: the list, one image, where its data come from, and the end of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.story import amounts
from dashboard.answer import Answer, Redirect, confirm, view
from dashboard.cloud import IMAGE, Call, rows, segment
from dashboard.errors import ApiRefused
from dashboard.page import Page
from dashboard.pages import image_edit
from dashboard.pages.image_edit import BASE, may_change
from dashboard.rights import May
from dashboard.visit import Visit

VISIBILITIES = ("public", "private", "shared", "community")
#: import methods of the Image API
_FILE, _URL = "glance-direct", "web-download"
#: status of an image whose data come, or are stored → what is under way
BUSY: Mapping[str, str] = {
    "importing": "The data are being imported",
    "saving": "The clusters store the data",
}
REFRESH_SECONDS = 2
#: images of a page that a name is searched in
MOST_SEARCHED = 1000


def index(visit: Visit) -> Answer:
    """List a page of images by name, or those with a part of a name or an ID."""
    asked = visit.query
    visibility, wanted = asked.get("visibility", ""), asked.get("name", "").strip()
    query = {
        # the API finds whole names only
        "limit": MOST_SEARCHED if wanted else visit.limit,
        "marker": asked.get("marker"),
        "visibility": visibility if visibility in VISIBILITIES else None,
        "sort": "name:asc",
    }
    found = visit.cloud.get(IMAGE, "/v2/images", **query)
    read = found["images"]
    images = [one for one in read if _is_called(one, wanted)]
    more = bool(found.get("next")) and bool(read)
    return view(
        "images.html",
        images=images,
        asked=asked,
        visibilities=VISIBILITIES,
        here=visit.here("/images"),
        busy=any(one["status"] in BUSY for one in images),
        refresh_seconds=REFRESH_SECONDS,
        following=visit.here("/images", marker=read[-1]["id"]) if more else "",
    )


def _is_called(image: Mapping[str, Any], wanted: str) -> bool:
    part = wanted.casefold()
    return part in str(image["name"] or "").casefold() or image["id"] == part


def show(visit: Visit) -> Answer:
    """Show an image, its properties, and how its data can come."""
    path = _path(visit)
    image, tasks, ways = visit.cloud.together(
        Call(IMAGE, path),
        Call(IMAGE, f"{path}/tasks", optional=True),
        Call(IMAGE, "/v2/info/import", optional=True),
    )
    methods = ways["import-methods"]["value"] if ways else ()
    return view(
        "image.html",
        image=image,
        properties=_properties(image),
        failures=[one["message"] for one in rows(tasks, "tasks") if one["status"] == "failure"],
        by_file=_FILE in methods,
        by_url=_URL in methods,
        changeable=may_change(visit, image),
        progress=BUSY.get(image["status"], ""),
        # a download is renewed all the time, so that its age says nothing
        received=[
            one["message"]
            for one in rows(tasks, "tasks")
            if one["status"] == "processing" and one["message"]
        ],
        refresh_seconds=REFRESH_SECONDS,
    )


def upload(visit: Visit) -> Answer:
    """Send a file to the API, and request its import."""
    path = _path(visit)

    def send() -> Any:
        assert visit.data is not None
        visit.cloud.upload(IMAGE, f"{path}/stage", visit.data)
        return visit.cloud.post(IMAGE, f"{path}/import", _import(""))

    return visit.begin(_page(visit), "The data are being imported.", send)


def take(visit: Visit) -> Answer:
    """Request an import: from the URL of the form, else of the uploaded data."""
    said = "The data are being imported."
    body = _import(visit.field("uri"))
    return visit.begin(_page(visit), said, visit.cloud.post, IMAGE, f"{_path(visit)}/import", body)


def ask_delete(visit: Visit) -> Answer:
    """Ask whether an image is to be deleted."""
    image = visit.cloud.get(IMAGE, _path(visit))
    name, size = image["name"] or image["id"], image["size"]
    data = f" ({amounts.size(float(size))})" if size else ""
    said = f"The image{data} and its files are deleted, and can't be restored. "
    return confirm(
        f"Delete {name}?",
        f"{said}Servers made of it remain.",
        f"{_page(visit)}/delete",
        _page(visit),
    )


def delete(visit: Visit) -> Answer:
    """Delete an image."""
    try:
        visit.cloud.delete(IMAGE, _path(visit))
    except ApiRefused as refused:
        visit.note(refused.message, "failed", refused.request_id)
        return Redirect(_page(visit))
    visit.note("The image is deleted.")
    return Redirect("/images")


def _import(uri: str) -> dict[str, Any]:
    return {"method": {"name": _URL, "uri": uri} if uri else {"name": _FILE}}


def _properties(image: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted((name, value) for name, value in image.items() if name not in BASE)


def _page(visit: Visit) -> str:
    return f"/images/{visit.params['image_id']}"


def _path(visit: Visit) -> str:
    return f"/v2/images/{segment(visit.params['image_id'])}"


_IMAGE = "/images/{image_id:uuid}"
PAGES = (
    Page("/images", index),
    Page("/images/create", image_edit.new, May.CHANGE, calls=1),
    Page("/images/create", image_edit.create, May.CHANGE, "POST", calls=2),
    Page(_IMAGE, show, calls=3),
    Page(f"{_IMAGE}/edit", image_edit.edit, May.CHANGE),
    Page(f"{_IMAGE}/edit", image_edit.change, May.CHANGE, "POST", calls=2),
    Page(f"{_IMAGE}/data", upload, May.CHANGE, "PUT", calls=2),
    Page(f"{_IMAGE}/import", take, May.CHANGE, "POST"),
    Page(f"{_IMAGE}/delete", ask_delete, May.CHANGE),
    Page(f"{_IMAGE}/delete", delete, May.CHANGE, "POST"),
)
