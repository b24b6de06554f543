"""What users send of images: whatever it is, it is understood or refused."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from api.image import documents
from common.errors import Forbidden, Invalid
from conductor.rpc.images import ImageEdit, NewImage

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
NAMES = st.text() | st.sampled_from(["name", "tags", "id", "min_ram", "visibility", "owner"])


def test_what_is_not_said_is_empty() -> None:
    assert documents.new_image({}, "p") == NewImage("p")
    said = {"name": None, "disk_format": None, "container_format": None}
    assert documents.new_image(said, "p") == NewImage("p")
    assert documents.new_image({"a.b:c": "1"}, "p").properties == {"a.b:c": "1"}


def test_both_ways_to_write_a_change() -> None:
    wanted = [ImageEdit("add", "a/b~c", "x"), ImageEdit("remove", "y")]
    with_paths = [{"op": "add", "path": "/a~1b~0c", "value": "x"}, {"op": "remove", "path": "/y"}]
    assert documents.edits(with_paths, by_path=True) == wanted
    named = [{"add": "/a~1b~0c", "value": "x"}, {"remove": "/y"}]
    assert documents.edits(named, by_path=False) == wanted


@given(VALUES | st.dictionaries(NAMES, VALUES))
def test_any_image_is_read_or_refused(body: Any) -> None:
    try:
        documents.new_image(body, "p")
    except (Invalid, Forbidden):
        return


@given(
    st.lists(
        st.fixed_dictionaries(
            {"op": st.sampled_from(["add", "remove", "replace"]) | VALUES},
            optional={"path": NAMES.map(lambda name: f"/{name}") | VALUES, "value": VALUES},
        )
    ),
    st.booleans(),
)
def test_any_change_is_read_or_refused(body: Any, by_path: bool) -> None:
    try:
        documents.edits(body, by_path=by_path)
    except (Invalid, Forbidden):
        return
