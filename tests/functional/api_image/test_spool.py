"""The spool of uploads: what a dead process left is deleted, but not what clusters wait for."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Collection
from pathlib import Path

import pytest

from api.image.data.spool import Spool
from common.errors import Conflict, NotFound, TooLarge
from tests.functional.waiting import eventually


def spool(folder: Path, needed: Collection[str] = (), most_bytes: int = 100) -> Spool:
    return Spool(str(folder / "spool"), most_bytes, lambda asked: set(asked) & set(needed))


def names(folder: Path) -> list[str]:
    return sorted(path.name.partition(".")[0] for path in (folder / "spool").iterdir())


def _upload_forever(folder: Path, written: int) -> None:
    with spool(folder).upload("dead") as upload:
        upload.write(b"half")
        os.write(written, b"x")
        signal.pause()


def test_what_a_dead_process_left_goes(tmp_path: Path) -> None:
    read, write = os.pipe()
    process = multiprocessing.get_context("fork").Process(
        target=_upload_forever, args=(tmp_path, write)
    )
    process.start()
    assert os.read(read, 1) == b"x"
    heir = spool(tmp_path)
    assert heir.tidy() == 1
    with pytest.raises(Conflict), heir.upload("dead"):
        pass
    process.kill()
    process.join()
    heir.watch_once()
    eventually(lambda: names(tmp_path) == [], 10, 0.02)
    os.close(read)
    os.close(write)


def test_complete_data_stay_as_long_as_a_cluster_waits(tmp_path: Path) -> None:
    mine = spool(tmp_path, needed={"a"})
    tokens = {}
    for image_id in ("a", "b"):
        with mine.upload(image_id) as upload:
            upload.write(b"0123456789")
            mine.complete(image_id, upload)
            upload.is_needed = True
            tokens[image_id] = upload.token
            # The conductor doesn't know of it yet.
            assert mine.tidy() == len(tokens)
    assert mine.read("a", tokens["a"], 3, 5) == (b"345", 10)
    assert mine.read("a", tokens["a"], 8, 500) == (b"89", 10)
    assert mine.tidy() == 1
    for image_id, token in (("b", tokens["b"]), ("a", tokens["b"]), ("a", "")):
        with pytest.raises(NotFound):
            mine.read(image_id, token, 0, 1)


def test_data_stay_where_only_the_answer_was_lost(tmp_path: Path) -> None:
    mine = spool(tmp_path, needed={"kept"})
    for image_id in ("kept", "refused"):
        with contextlib.suppress(TimeoutError), mine.upload(image_id) as upload:
            upload.write(b"x")
            mine.complete(image_id, upload)
            raise TimeoutError
    assert names(tmp_path) == ["kept"]


def test_data_stay_for_a_conductor_that_takes_them_late(tmp_path: Path) -> None:
    """It did not answer: whether it has the message isn't known for a while."""
    mine, other = spool(tmp_path), spool(tmp_path)
    with contextlib.suppress(TimeoutError), mine.upload("a") as upload:
        upload.write(b"x")
        mine.complete("a", upload)
        mine.doubt("a", upload)
        raise TimeoutError
    assert other.tidy() == 1
    assert mine.read("a", upload.token, 0, 0) == (b"x", 1)
    (path,) = (tmp_path / "spool").iterdir()
    os.utime(path, (1, 1))
    assert other.tidy() == 0


def test_an_upload_that_ends_while_the_spool_is_tidied_stays(tmp_path: Path) -> None:
    # It isn't needed when the look begins, and is when its lock is gone.
    folder = tmp_path / "spool"
    folder.mkdir()
    (folder / "a.token").write_bytes(b"x")
    answers: list[Collection[str]] = [(), ("a",)]
    assert Spool(str(folder), 100, lambda _: answers.pop(0)).tidy() == 1
    assert answers == []


def test_an_upload_has_a_limit_and_a_second_try(tmp_path: Path) -> None:
    mine = spool(tmp_path)
    with mine.upload("a") as upload:
        upload.write(bytes(60))
        with pytest.raises(TooLarge):
            upload.write(bytes(60))
    assert names(tmp_path) == []
    with mine.upload("a") as upload:
        upload.write(b"x")
        assert upload.size_bytes == 1
    assert names(tmp_path) == []
