"""UUIDs of names."""

from __future__ import annotations

import uuid

from common import ids


def test_images_of_files_look_like_others() -> None:
    made = ids.named("image", "debian-12")
    assert made == ids.named("image", "debian-12") != ids.named("image", "debian-13")
    assert uuid.UUID(made).version == 4
    assert ids.is_of_name(made)
    assert not any(ids.is_of_name(ids.new_uuid()) for _ in range(100))


def test_other_names_have_the_form_of_names() -> None:
    assert uuid.UUID(ids.named("network", "vmbr0")).version == 5
