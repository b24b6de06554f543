"""What an image is after a change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from common.errors import Conflict, Forbidden, TooLarge
from conductor.rpc.images import ImageEdit
from conductor.store.images import image_edits


def an_image(**changes: Any) -> Any:
    row = {"id": "i", "project_id": "p", "status": "queued", "properties": {"os": "x"}}
    row |= {"disk_format": "raw", "container_format": "bare", "tags": None, "name": ""}
    row["hidden"] = False
    return SimpleNamespace(**(row | changes))


def test_steps_build_on_each_other() -> None:
    steps = [
        ImageEdit("add", "a", "1"),
        ImageEdit("replace", "a", "2"),
        ImageEdit("remove", "os"),
        ImageEdit("replace", "disk_format", "qcow2"),
        ImageEdit("add", "os_hidden", True),
    ]
    assert image_edits.after(an_image(), steps) == {
        "properties": {"a": "2"},
        "disk_format": "qcow2",
        "hidden": True,
    }
    assert image_edits.after(an_image(), [ImageEdit("add", "os", "x")]) == {}


@pytest.mark.parametrize(
    ("image", "step", "refusal"),
    [
        ({}, ImageEdit("replace", "a", "1"), Conflict),
        ({}, ImageEdit("remove", "a"), Conflict),
        ({}, ImageEdit("remove", "name"), Forbidden),
        ({}, ImageEdit("add", "tags", [str(number) for number in range(129)]), TooLarge),
        ({"status": "active"}, ImageEdit("replace", "disk_format", "qcow2"), Forbidden),
        ({"project_id": None}, ImageEdit("add", "name", "x"), Forbidden),
        ({"properties": dict.fromkeys(map(str, range(128)))}, ImageEdit("add", "a"), TooLarge),
    ],
)
def test_refusals(image: Any, step: ImageEdit, refusal: type[Exception]) -> None:
    with pytest.raises(refusal):
        image_edits.after(an_image(**image), [step])


def test_an_image_with_too_many_properties_may_lose_some() -> None:
    many = an_image(properties=dict.fromkeys(map(str, range(200)), "x"))
    left = image_edits.after(many, [ImageEdit("remove", "7")])
    assert len(left["properties"]) == 199
    same = [ImageEdit("replace", "disk_format", "raw")]
    assert image_edits.after(an_image(status="active"), same) == {"disk_format": "raw"}
