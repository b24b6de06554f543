"""Imports over HTTP: staged data and downloads, their tasks, and what they leave."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from api.image import config as image_config
from api.image.data.downloads import MOST, Downloads
from api.image.data.uploads import Uploads
from common import clock
from common.context import RequestContext
from common.messages.commands import StoreImage
from conductor.endpoints.images import ImageEndpoint
from conductor.images.stale_imports import StaleImports
from db import engine, schema
from db.reading import reading
from db.reads.images import images
from tests.fixtures import auth
from tests.fixtures.listings import a_conf
from tests.functional.api_image.test_uploads import DATA, Site, _fetched, a_site
from tests.functional.api_image.test_user_images import call, patch, put
from tests.functional.waiting import eventually

DIRECT = {"method": {"name": "glance-direct"}}


class Origin:
    """A server that images are downloaded from."""

    def __init__(self) -> None:
        self.answer: Callable[[Any], None] = self.all
        self.asked: list[str] = []
        origin = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                origin.asked.append(self.path)
                origin.answer(self)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def all(self, request: Any) -> None:
        self.send(request, 200, DATA)

    @staticmethod
    def send(request: Any, status: int, data: bytes = b"", **headers: str) -> None:
        request.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(data)


@pytest.fixture
def origin() -> Iterator[Origin]:
    made = Origin()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture
def site(tmp_path: Path, origin: Origin) -> Iterator[Site]:
    options: dict[str, Any] = {
        "download_from": [origin.url],
        "download_networks": ["127.0.0.0/8"],
        "download_seconds": 4,
    }
    with a_site(tmp_path, **options) as made:
        yield made


def stage(site: Site, image_id: str, data: bytes = DATA, token: str = auth.MEMBER) -> int:
    headers = {"X-Auth-Token": token, "Content-Type": "application/octet-stream"}
    url = f"{site.url}/images/{image_id}/stage"
    return requests.put(url, data=data, headers=headers, timeout=60).status_code


def take(site: Site, image_id: str, body: Any, **more: Any) -> requests.Response:
    return call(f"{site.url}/images/{image_id}/import", "POST", body, **more)


def download(site: Site, image_id: str, uri: str) -> requests.Response:
    return take(site, image_id, {"method": {"name": "web-download", "uri": uri}})


def task(site: Site, image_id: str) -> Any:
    (found,) = call(f"{site.url}/images/{image_id}/tasks").json()["tasks"]
    return found


def look(site: Site, seconds: float) -> None:
    """As conductors do now and then, so much later."""
    later = schema.images.update().values(updated_at=clock.after(-seconds))
    site.world.conductor.store.run(lambda c: c.execute(later))
    StaleImports(site.world.conductor.cloud).look()


def test_staged_data_go_to_the_clusters_when_they_are_imported(site: Site) -> None:
    image_id = site.new()
    assert take(site, image_id, DIRECT).status_code == 409
    assert stage(site, image_id) == 204
    shown = site.image(image_id)
    assert (shown["status"], shown["size"]) == ("uploading", None)
    assert task(site, image_id)["status"] == "pending"
    assert (len(site.files()), site.world.rows(schema.operations)) == (1, [])
    assert (stage(site, image_id), site.send(image_id).status_code) == (409, 409)
    answer = take(site, image_id, DIRECT)
    assert (answer.status_code, answer.content) == (202, b"")
    shown = site.image(image_id)
    assert (shown["status"], shown["size"]) == ("importing", len(DATA))
    assert shown["os_hash_value"] == hashlib.sha512(DATA).hexdigest()
    assert take(site, image_id, DIRECT).status_code == 409
    command = site.command(StoreImage)
    assert _fetched(site, command) == DATA
    assert task(site, image_id)["status"] == "processing"
    site.world.answer(command, ok=True)
    assert site.becomes(image_id, "active")
    done = task(site, image_id)
    assert (done["status"], done["type"]) == ("success", "api_image_import")
    assert done["input"] == {"image_id": image_id, "import_req": {"method": DIRECT["method"]}}
    assert "token" not in str(done)
    assert take(site, image_id, DIRECT).status_code == 409


def test_staged_data_go_with_their_image_or_their_time(site: Site) -> None:
    gone, late = site.new(), site.new()
    assert (stage(site, gone), stage(site, late)) == (204, 204)
    assert len(site.files()) == 2
    assert call(f"{site.url}/images/{gone}", "DELETE").status_code == 204
    look(site, 86_000)
    assert site.image(late)["status"] == "uploading"
    look(site, 86_500)
    assert site.image(late)["status"] == "queued"
    failed = task(site, late)
    assert (failed["status"], "not imported in time" in failed["message"]) == ("failure", True)
    # A later request deletes what nobody needs.
    assert site.send(site.new()).status_code == 204
    eventually(lambda: len(site.files()) == 1, 10)
    assert stage(site, late) == 204


def test_a_download_is_an_upload_from_elsewhere(site: Site, origin: Origin) -> None:
    image_id = site.new()
    answer = download(site, image_id, f"{origin.url}/debian.raw?x=1")
    assert (answer.status_code, answer.content) == (202, b"")
    command = site.command(StoreImage)
    assert (origin.asked, _fetched(site, command)) == (["/debian.raw?x=1"], DATA)
    assert site.image(image_id)["status"] == "importing"
    look(site, 1000)
    assert site.image(image_id)["status"] == "importing"
    site.world.answer(command, ok=True)
    assert site.becomes(image_id, "active")
    done = task(site, image_id)
    assert done["status"] == "success"
    assert done["input"]["import_req"]["method"]["uri"] == f"{origin.url}/debian.raw?x=1"
    # Others see the image, but not from where it is.
    assert patch(site.url, image_id, put("visibility", "community", "replace")).ok
    for token, number in ((auth.OTHER, 0), (auth.READER, 1), (auth.ADMIN, 1)):
        seen = call(f"{site.url}/images/{image_id}/tasks", token=token)
        assert (seen.status_code, len(seen.json()["tasks"])) == (200, number)


def test_a_download_says_how_much_of_it_has_come(site: Site, origin: Origin) -> None:
    paused, more = threading.Event(), threading.Event()
    size = len(DATA) // 2

    def slow(request: Any) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(DATA)))
        request.end_headers()
        request.wfile.write(DATA[:size])
        request.wfile.flush()
        paused.set()
        assert more.wait(60)
        request.wfile.write(DATA[size:])

    origin.answer = slow
    image_id = site.new()
    assert download(site, image_id, f"{origin.url}/slow").status_code == 202
    assert paused.wait(60)
    eventually(lambda: task(site, image_id)["message"] == f"Copied {size >> 20} MiB")
    assert size >> 20
    assert task(site, image_id)["status"] == "processing"
    seen = call(f"{site.url}/images/{image_id}/tasks", token=auth.OTHER)
    assert "Copied" not in seen.text
    more.set()
    site.world.answer(site.command(StoreImage), ok=True)
    assert site.becomes(image_id, "active")
    assert (task(site, image_id)["status"], task(site, image_id)["message"]) == ("success", "")


def _status(status: int, **headers: str) -> Callable[[Any], None]:
    return lambda request: Origin.send(request, status, b"x", **headers)


def _short(request: Any) -> None:
    Origin.send(request, 200, DATA[:1000], **{"Content-Length": str(len(DATA))})


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (_status(404), "answered 404"),
        (_status(302, Location="http://127.0.0.1:1/x"), "does not pass filtering"),
        (_status(302, Location="file:///etc/passwd"), "does not pass filtering"),
        (_status(302, Location="/again"), "too many redirects"),
        (_status(302), "does not pass filtering"),
        (_short, "IncompleteRead|ProtocolError"),
        (lambda request: request.connection.close(), "can't be reached"),
    ],
    ids=["absent", "elsewhere", "a file", "in circles", "nowhere", "cut off", "closed"],
)
def test_a_download_that_fails_leaves_nothing(
    site: Site, origin: Origin, answer: Callable[[Any], None], why: str
) -> None:
    image_id = site.new()
    origin.answer = answer
    assert download(site, image_id, f"{origin.url}/a").status_code == 202
    assert site.becomes(image_id, "queued")
    failed = task(site, image_id)
    assert failed["status"] == "failure"
    assert any(one in failed["message"] for one in why.split("|")), failed["message"]
    eventually(lambda: site.files() == [], 10)
    assert site.world.rows(schema.operations) == []
    origin.answer = origin.all
    assert download(site, image_id, f"{origin.url}/a").status_code == 202
    assert site.command(StoreImage).size_bytes == len(DATA)


def test_a_host_that_drips_is_given_up_at_its_time(site: Site, origin: Origin) -> None:
    over = threading.Event()

    def drip(request: Any) -> None:
        request.send_response(200)
        request.end_headers()
        while not over.wait(0.1):
            request.wfile.write(b"x")

    origin.answer = drip
    image_id = site.new()
    assert download(site, image_id, f"{origin.url}/a").status_code == 202
    assert site.becomes(image_id, "queued")
    over.set()
    assert "took too long" in task(site, image_id)["message"]
    eventually(lambda: site.files() == [], 10)


def test_what_was_downloaded_is_looked_at(site: Site, origin: Origin) -> None:
    image_id = site.new("qcow2")
    assert download(site, image_id, f"{origin.url}/a").status_code == 202
    eventually(lambda: task(site, image_id)["status"] == "failure", 10)
    assert "it is raw, not qcow2" in task(site, image_id)["message"]


def test_a_download_whose_process_ended_is_given_up(site: Site, origin: Origin) -> None:
    image_id = site.new()
    going, goes_on = threading.Event(), threading.Event()

    def slow(request: Any) -> None:
        going.set()
        goes_on.wait(60)
        origin.all(request)

    origin.answer = slow
    assert download(site, image_id, f"{origin.url}/a").status_code == 202
    assert going.wait(60)
    look(site, 60)
    assert site.image(image_id)["status"] == "importing"
    look(site, 130)
    assert site.image(image_id)["status"] == "queued"
    assert "has ended" in task(site, image_id)["message"]
    assert call(f"{site.url}/images/{image_id}", "DELETE").status_code == 204
    # Its download continues all the same, and comes too late.
    goes_on.set()
    eventually(lambda: site.files() == [], 10)
    assert site.world.rows(schema.operations) == []


def test_none_waits_for_another_one(site: Site, origin: Origin) -> None:
    """A waiting import would be taken for an import whose process has ended."""
    goes_on = threading.Event()

    def slow(request: Any) -> None:
        goes_on.wait(60)
        origin.all(request)

    origin.answer = slow
    going = [site.new() for _ in range(MOST)]
    for image_id in going:
        assert download(site, image_id, f"{origin.url}/{image_id}").status_code == 202
    eventually(lambda: len(origin.asked) == MOST, 10)
    late = site.new()
    refused = download(site, late, f"{origin.url}/late")
    assert (refused.status_code, site.image(late)["status"]) == (503, "queued")
    goes_on.set()
    for image_id in going:
        eventually(lambda one=image_id: site.image(one)["checksum"] is not None, 10)  # type: ignore[misc]
    eventually(lambda: download(site, late, f"{origin.url}/late").status_code == 202, 10)


def test_the_conductor_hears_of_it_before_the_host_answers(site: Site, origin: Origin) -> None:
    going, goes_on = threading.Event(), threading.Event()

    def slow(request: Any) -> None:
        going.set()
        goes_on.wait(60)
        origin.all(request)

    origin.answer = slow
    image_id = site.new()
    conf = a_conf()
    image_config.register(conf)
    for name, value in {
        "fetch_url": site.url,
        "spool_dir": str(site.spool),
        "download_from": [origin.url],
        "download_networks": ["127.0.0.0/8"],
    }.items():
        conf.set_override(name, value, "images")
    reader = engine.reader(site.world.url)
    conductor: Any = ImageEndpoint(site.world.conductor.cloud)
    ctxt = RequestContext(user_id="demo", project_id="demo", roles=["member"])
    with reading(reader) as connection:
        found = images.get(connection, image_id, "demo")
    assert found is not None
    downloads = Downloads(conf, Uploads(conf, reader), 0.05)
    downloads.begin(ctxt, conductor, found, f"{origin.url}/a")
    assert going.wait(60)
    look(site, 60)

    def last_report() -> Any:
        return next(one for one in site.world.rows(schema.images) if one.id == image_id).updated_at

    before = last_report()
    eventually(lambda: last_report() > before, 10)
    goes_on.set()
    assert site.command(StoreImage).resource_id == image_id
    reader.dispose()


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        ({}, 400, "'method' field"),
        ([], 400, "'method' field"),
        ({"method": "web-download"}, 400, "'method' field"),
        ({"method": {}}, 400, "'name' field"),
        ({"method": {"name": "copy-image"}}, 400, "Unknown import method name 'copy-image'"),
        ({"method": {"name": ["x"]}}, 400, "Unknown import method"),
        ({**DIRECT, "all_stores": "yes"}, 400, "'all_stores' must be boolean"),
        ({**DIRECT, "stores": ["a"]}, 400, "no stores"),
        (DIRECT, 409, "staged before"),
        ({"method": {"name": "web-download"}}, 400, "does not pass filtering"),
        ({"method": {"name": "web-download", "uri": 5}}, 400, "does not pass filtering"),
        (
            {"method": {"name": "web-download", "uri": "http://169.254.169.254/"}},
            400,
            "does not pass filtering",
        ),
    ],
    ids=str,
)
def test_what_is_no_import_changes_nothing(site: Site, body: Any, status: int, why: str) -> None:
    image_id = site.new()
    before = site.image(image_id)
    answer = take(site, image_id, body)
    assert (answer.status_code, why in answer.text) == (status, True), answer.text
    assert site.image(image_id) == before
    assert call(f"{site.url}/images/{image_id}/tasks").json() == {"tasks": []}


def test_others_may_not(site: Site, origin: Origin) -> None:
    image_id = site.new()
    assert stage(site, image_id, token=auth.OTHER) == 404
    assert stage(site, image_id, token=auth.READER) == 403
    assert stage(site, image_id) == 204
    assert take(site, image_id, DIRECT, token=auth.OTHER).status_code == 404
    assert take(site, image_id, DIRECT, token=auth.READER).status_code == 403
    bare = str(call(f"{site.url}/images", "POST", {}).json()["id"])
    answer = download(site, bare, f"{origin.url}/a")
    assert (answer.status_code, "needs to be set before import" in answer.text) == (409, True)


def test_a_method_that_is_off_is_named_with_its_option(tmp_path: Path) -> None:
    with a_site(tmp_path) as site:
        refused = download(site, site.new(), "https://example.org/a.qcow2")
        assert (refused.status_code, "[images] download_from" in refused.text) == (400, True)


def test_the_methods_are_listed(site: Site, tmp_path: Path) -> None:
    methods = call(f"{site.url}/info/import").json()["import-methods"]["value"]
    assert methods == ["glance-direct", "web-download"]
    made = call(f"{site.url}/images", "POST", {})
    assert made.headers["OpenStack-image-import-methods"] == "glance-direct,web-download"
    folder = tmp_path / "without"
    folder.mkdir()
    with a_site(folder, fetch_url="") as other:
        assert call(f"{other.url}/info/import").json()["import-methods"]["value"] == []
        image_id = other.new()
        assert stage(other, image_id) == 403
        assert take(other, image_id, DIRECT).status_code == 403
