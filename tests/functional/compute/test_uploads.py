"""An agent gives a cluster what a user uploaded, whatever fails on the way; and takes it away."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from common import clock, ids
from common.messages.commands import Placed, RemoveImage, StoreImage
from common.messages.reports import Category
from common.resources import image_files
from common.resources.states import ResourceType
from compute.commands.image_source import PIECE_BYTES
from tests.functional.compute.conftest import CLOUD, Cluster, Worker
from tests.functional.simulator_fixture import RunningSimulator

#: three pieces, the last of them a short one
_numbers = itertools.count(1)
NORTH, SOUTH = (ids.named("cloud", name) for name in ("north", "south"))
DATA = os.urandom(2 * PIECE_BYTES + 17)
PATH = "/storage/shared/upload$"


class Spool:
    """The API's host: serves DATA by ranges, and breaks off where a test says so."""

    def __init__(self) -> None:
        self.data = DATA
        self.asked: list[int] = []
        self.breaks_at: set[int] = set()
        self.waits_at = -1
        self.waiting, self.goes_on = threading.Event(), threading.Event()
        spool = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                spool.answer(self)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v2/images/i/spool"

    def answer(self, request: Any) -> None:
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers["Range"])
        assert found is not None
        first, last = int(found[1]), int(found[2])
        self.asked.append(first)
        if first in self.breaks_at:
            self.breaks_at.discard(first)
            request.close_connection = True
            return
        if first == self.waits_at:
            self.waiting.set()
            self.goes_on.wait(60)
        known = request.headers["X-Spool-Token"] == "token"
        data = self.data[first : last + 1] if known else b""
        request.send_response(206 if data else 404)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data)


@pytest.fixture
def spool() -> Iterator[Spool]:
    made = Spool()
    thread = threading.Thread(target=made.server.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.goes_on.set()
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def a_store(spool: Spool, **changes: Any) -> StoreImage:
    image_id = changes.pop("image_id", None) or ids.new_uuid()
    sha512 = hashlib.sha512(DATA).hexdigest()
    cloud = changes.setdefault("cloud", CLOUD)
    values: dict[str, Any] = {
        "volid": image_files.volid("shared", cloud, image_id, sha512, "raw"),
        "url": spool.url,
        "token": "token",
        "size_bytes": len(DATA),
        "sha512": sha512,
    }
    number = next(_numbers)
    placed = Placed("pve1", "c1", "pve1", 0)
    return StoreImage(
        number, 1, ResourceType.IMAGE, image_id, placed, clock.after(60), **(values | changes)
    )


def a_removal(stored: StoreImage, **changes: Any) -> RemoveImage:
    values = {"volid": stored.volid, "cloud": stored.cloud} | changes
    return RemoveImage(
        stored.operation_id + 2**24,
        1,
        ResourceType.IMAGE,
        stored.resource_id,
        stored.placed,
        clock.after(60),
        **values,
    )


def files(simulator: RunningSimulator) -> dict[str, int]:
    """Sizes of the files of uploads."""
    listed = simulator.state()["clusters"][0]["volumes"]
    return {one["volid"]: one["size"] for one in listed if "/mn-" in one["volid"]}


def test_what_was_uploaded_is_listed_and_goes(
    simulator: RunningSimulator, worker: Worker, cluster: Cluster, spool: Spool
) -> None:
    command = a_store(spool)
    spool.breaks_at = {PIECE_BYTES}
    outcome = worker.run(command)
    assert outcome.failure is None
    assert files(simulator) == {command.volid: len(DATA)}
    assert spool.asked == [0, PIECE_BYTES, PIECE_BYTES, 2 * PIECE_BYTES]
    # Servers can be made of it as soon as the outcome is known.
    reported = [facts for beat in worker.conductor.heartbeats for facts in beat.facts]
    upload = image_files.parse(command.volid)
    assert upload is not None
    listed = image_files.listed(upload)
    worker.conductor.wait_for(lambda: any(listed in one.images for one in reported))
    again = a_store(spool, volid=command.volid)
    again = dataclasses.replace(again, resource_id=command.resource_id)
    assert worker.run(again).ok
    assert len(cluster.calls("POST", "/upload")) == 1
    for number in range(2):
        removal = a_removal(command)
        outcome = worker.run(dataclasses.replace(removal, attempt=number))
        assert (outcome.ok, outcome.gone) == (True, True)
    assert files(simulator) == {}


@pytest.mark.parametrize(
    ("data", "category"),
    [(b"", Category.IMAGE_NOT_FOUND), (os.urandom(len(DATA)), Category.IMAGE_CORRUPT)],
    ids=["gone", "other data"],
)
def test_what_is_not_what_was_uploaded_leaves_nothing(
    simulator: RunningSimulator, worker: Worker, spool: Spool, data: bytes, category: Category
) -> None:
    spool.data = data
    outcome = worker.run(a_store(spool))
    assert outcome.failure is not None
    assert (outcome.failure.category, files(simulator)) == (category, {})


def test_only_files_of_the_image_are_touched(
    simulator: RunningSimulator, worker: Worker, spool: Spool
) -> None:
    """A command that names another file, by whatever mistake, is refused."""
    before = simulator.state()["clusters"][0]["volumes"]
    other = "shared:import/cirros.qcow2"
    command = a_store(spool, volid=other)
    for wrong in (command, a_removal(command, volid=other)):
        outcome = worker.run(wrong)
        assert outcome.failure is not None
        assert outcome.failure.category is Category.PROTECTED
    assert simulator.state()["clusters"][0]["volumes"] == before


def test_two_clouds_whose_users_chose_one_id_have_files_of_their_own(
    simulator: RunningSimulator, worker: Worker, spool: Spool
) -> None:
    """The same image ID, storage and size: neither finds, replaces or removes the other's."""
    image_id = ids.new_uuid()
    north = a_store(spool, image_id=image_id, cloud=NORTH)
    assert worker.run(north).ok
    spool.data = bytes(reversed(DATA))
    other = hashlib.sha512(spool.data).hexdigest()
    volid = image_files.volid("shared", SOUTH, image_id, other, "raw")
    south = a_store(spool, image_id=image_id, cloud=SOUTH, sha512=other, volid=volid)
    assert worker.run(south).ok
    both = {north.volid: len(DATA), south.volid: len(DATA)}
    assert files(simulator) == both
    for wrong in (
        dataclasses.replace(south, volid=north.volid),
        dataclasses.replace(south, volid=north.volid, sha512=north.sha512),
        a_removal(south, volid=north.volid),
        # Not even the cloud's own file, if its name is that of other data.
        dataclasses.replace(south, sha512=north.sha512),
    ):
        failure = worker.run(dataclasses.replace(wrong, operation_id=next(_numbers))).failure
        assert failure is not None
        assert failure.category is Category.PROTECTED, failure
        assert files(simulator) == both
    assert worker.run(a_removal(south)).gone
    assert files(simulator) == {north.volid: len(DATA)}


@pytest.mark.parametrize(
    "fault",
    [
        {"action": "lose-answer", "method": "POST", "path": PATH},
        {"action": "fail", "method": "POST", "path": PATH, "status": 500, "text": "no"},
        {"action": "drop", "method": "POST", "path": PATH},
        {"action": "task-fail", "method": "POST", "path": PATH, "text": "cp failed"},
        {"action": "lose-answer", "method": "DELETE", "path": "/mn-"},
        {"action": "task-fail", "method": "DELETE", "path": "/mn-", "text": "unlink failed"},
    ],
    ids=lambda fault: f"{fault['action']} {fault['method']}",
)
def test_a_repeat_ends_what_failed(
    simulator: RunningSimulator, worker: Worker, spool: Spool, fault: dict[str, Any]
) -> None:
    command = a_store(spool)
    simulator.fault(**fault)
    outcome = worker.run(command)
    if not outcome.ok:
        assert files(simulator) in ({}, {command.volid: len(DATA)})
        assert worker.run(dataclasses.replace(command, attempt=2)).ok
    assert files(simulator) == {command.volid: len(DATA)}
    removal = a_removal(command)
    if not worker.run(removal).gone:
        assert worker.run(dataclasses.replace(removal, attempt=2)).gone
    assert files(simulator) == {}


def test_a_process_that_ends_in_the_upload_leaves_it_to_the_next(
    simulator: RunningSimulator, worker: Worker, second: Worker, spool: Spool
) -> None:
    command = a_store(spool)
    spool.waits_at = PIECE_BYTES
    second.send(command)
    assert spool.waiting.wait(60)
    stopped = threading.Thread(target=second.service.stop)
    stopped.start()
    spool.waits_at = -1
    spool.goes_on.set()
    stopped.join()
    assert (files(simulator), second.conductor.outcomes(command)) == ({}, [])
    assert worker.run(dataclasses.replace(command, attempt=2)).ok
    assert files(simulator) == {command.volid: len(DATA)}
    assert worker.run(a_removal(command)).gone
