"""The forms for a new image and for what an image is called, needs and says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common.errors import Invalid
from dashboard.answer import Answer, Redirect, View
from dashboard.cloud import IMAGE, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.pages import lines
from dashboard.visit import Visit, as_number

#: what is no property of a user's
BASE = frozenset(
    {
        *("id", "name", "status", "visibility", "protected", "os_hidden", "owner", "tags"),
        *("container_format", "disk_format", "size", "virtual_size", "checksum"),
        *("os_hash_algo", "os_hash_value", "min_disk", "min_ram", "created_at", "updated_at"),
        *(
            "self",
            "file",
            "schema",
            "direct_url",
            "locations",
            "stores",
            "os_glance_importing_to_stores",
        ),
        *("os_glance_failed_import",),
    }
)
FORMATS = ("qcow2", "raw", "vmdk", "iso")
VISIBILITIES = ("private", "shared", "community", "public")
_PATCH = "application/openstack-images-v2.1-json-patch"
_NUMBERS = ("min_disk", "min_ram")
_NEW = {
    "name": "",
    "disk_format": "qcow2",
    "visibility": "private",
    "min_disk": "0",
    "min_ram": "0",
    "protected": "",
    "properties": "",
    "uri": "",
}


def may_change(visit: Visit, image: Mapping[str, Any]) -> bool:
    """Return whether buttons to change it are shown: it is the project's, or the user operates."""
    return visit.operates or image["owner"] == visit.project_id


def new(visit: Visit) -> Answer:
    """Show the form for a new image."""
    return _form(visit, _NEW)


def create(visit: Visit) -> Answer:
    """Make an image without data, and begin to download them where the form has a URL."""
    given = _given(visit)
    try:
        base = {"disk_format": given["disk_format"], "container_format": "bare"}
        body = _wanted(given) | base
        image = visit.cloud.post(IMAGE, "/v2/images", body)
    except (ApiRefused, Invalid) as refused:
        return _form(visit, given, refused)
    page = f"/images/{image['id']}"
    if not given["uri"]:
        visit.note("The image is made; it has no data yet.")
        return Redirect(page)
    method = {"method": {"name": "web-download", "uri": given["uri"]}}
    said = "The data are being downloaded."
    return visit.begin(page, said, visit.cloud.post, IMAGE, f"/v2{page}/import", method)


def edit(visit: Visit) -> Answer:
    """Show the form for what may be changed of an image."""
    image = visit.cloud.get(IMAGE, _path(visit))
    given = {
        **_NEW,
        **{name: str(image[name] or "") for name in ("name", "visibility", "disk_format")},
        **{name: str(image[name]) for name in _NUMBERS},
        "protected": "1" if image["protected"] else "",
        "properties": lines.as_lines(_editable(image)),
    }
    return _form(visit, given, image=image)


def change(visit: Visit) -> Answer:
    """Change what differs from the form, in one request."""
    image, given = visit.cloud.get(IMAGE, _path(visit)), _given(visit)
    try:
        steps = list(_steps(image, _wanted(given)))
        if steps:
            visit.cloud.patch(IMAGE, _path(visit), steps, _PATCH)
    except (ApiRefused, Invalid) as refused:
        return _form(visit, given, refused, image)
    visit.note("The image is changed." if steps else "Nothing was to be changed.")
    return Redirect(f"/images/{image['id']}")


def _given(visit: Visit) -> dict[str, str]:
    return {name: visit.field(name) for name in _NEW}


def _wanted(given: Mapping[str, str]) -> dict[str, Any]:
    """Return the attributes and properties that a form asks for. Raises Invalid."""
    properties = _from_lines(given["properties"])
    return {
        **properties,
        "name": given["name"],
        "visibility": given["visibility"],
        "protected": bool(given["protected"]),
        **{name: as_number(given[name] or "0") for name in _NUMBERS},
    }


def _steps(image: Mapping[str, Any], wanted: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """Return the steps of a change, in the form of a JSON patch."""
    steps: list[dict[str, Any]] = []
    for name, value in wanted.items():
        if name not in image:
            steps.append({"op": "add", "path": _pointer(name), "value": value})
        elif (image[name] or type(value)()) != value:
            steps.append({"op": "replace", "path": _pointer(name), "value": value})
    gone = [name for name in _editable(image) if name not in wanted]
    return [*steps, *({"op": "remove", "path": _pointer(name)} for name in gone)]


def _pointer(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _editable(image: Mapping[str, Any]) -> dict[str, str]:
    """Return the properties that a form can edit; other properties are left unchanged."""
    return {
        name: value
        for name, value in image.items()
        if name not in BASE and lines.fits(name, value)
    }


def _from_lines(text: str) -> dict[str, str]:
    """Return the properties of lines of NAME=VALUE. Raises Invalid."""
    found = lines.pairs(text, "A property")
    for name in BASE & found.keys():
        raise Invalid(f"{name} is no property: it has a field of its own, or none.")
    return found


def _form(
    visit: Visit,
    given: Mapping[str, str],
    refused: ApiRefused | Invalid | None = None,
    image: Mapping[str, Any] | None = None,
) -> View:
    methods: Sequence[str] = ()
    if image is None:
        ways = visit.cloud.get(IMAGE, "/v2/info/import")
        methods = ways["import-methods"]["value"]
    visibilities = [
        one for one in VISIBILITIES if visit.operates or one in (given["visibility"], *_OWN)
    ]
    values = {
        "given": given,
        "image": image,
        "refused": refused,
        "formats": FORMATS,
        "visibilities": visibilities,
        "by_url": "web-download" in methods,
        "by_file": "glance-direct" in methods,
    }
    return View("image_form.html", values, status_of(refused))


#: visibilities that a project gives its own images
_OWN = ("private", "shared", "community")


def _path(visit: Visit) -> str:
    return f"/v2/images/{segment(visit.params['image_id'])}"
