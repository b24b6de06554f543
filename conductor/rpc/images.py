"""Calls about images, their tags, and the projects that they are shared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from common.context import RequestContext

#: how data of an image are imported; Glance's names
DIRECT, DOWNLOAD = "glance-direct", "web-download"


@dataclass(frozen=True)
class NewImage:
    """An image that a user makes, without data; empty: the user did not say."""

    project_id: str
    id: str | None = None
    """Chosen by the user, lower case with dashes; None: any."""
    name: str = ""
    visibility: str = "shared"
    disk_format: str = ""
    container_format: str = ""
    min_disk_gib: int = 0
    min_ram_mib: int = 0
    protected: bool = False
    hidden: bool = False
    tags: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MetadefNamespace:
    """A namespace of metadata definitions, as Glance has them."""

    name: str
    project_id: str
    """Its owner."""
    display_name: str | None = None
    description: str | None = None
    visibility: str = "private"
    protected: bool = False


@dataclass(frozen=True)
class MetadefItem:
    """What a namespace defines: of a kind it has one of a name."""

    kind: str
    """``property``, ``object``, ``tag`` or ``resource_type``."""
    name: str
    body: Mapping[str, Any] = field(default_factory=dict)
    """What else is said of it, in Glance's words."""


@dataclass(frozen=True)
class ImageData:
    """Data that a user sent for an image, on the host of the API that took them."""

    url: str
    """Where agents fetch them, by ranges."""
    token: str = field(repr=False)
    """Proves that they may."""
    size_bytes: int
    virtual_size_bytes: int
    """Of the disk that they hold."""
    disk_format: str
    md5: str
    sha512: str


@dataclass(frozen=True)
class ImportTask:
    """An import of an image: data that were staged, or that are downloaded."""

    id: str
    method: str
    """As in the API."""
    user_id: str
    request_id: str
    uri: str | None = None
    """Where the data are downloaded from."""
    message: str = ""
    """Why it failed; empty: it did not."""
    staged: ImageData | None = None
    """What was staged, until the import begins."""


@dataclass(frozen=True)
class ImageEdit:
    """One step of a change to an image."""

    op: str
    """``add``, ``replace`` or ``remove``."""
    name: str
    """An attribute as in the API, or a property."""
    value: Any = None


class ImageRpc(Protocol):
    """Images, their tags, and the projects that they are shared with."""

    def create_image(self, ctxt: RequestContext, image: NewImage) -> str:
        """Make an image that has no data yet; return its id.

        Raises Conflict if the id is taken or may become that of an operator's file, TooLarge.
        """

    def edit_image(self, ctxt: RequestContext, image_id: str, edits: list[ImageEdit]) -> None:
        """Change attributes and properties, all or none.

        Raises Conflict for a property that doesn't exist, TooLarge, and Forbidden for what
        operators' storages and configuration say, and for formats of an image that has data.
        """

    def delete_image(self, ctxt: RequestContext, image_id: str) -> None:
        """Delete an image of a project. Raises Forbidden for a protected one."""

    def save_image(
        self, ctxt: RequestContext, image_id: str, data: ImageData, task_id: str | None = None
    ) -> None:
        """Have clusters fetch the data of a queued image, which is 'saving' from now on.

        ``task_id``: the download that brought the data; its image remains 'importing'. Raises
        Conflict for an image in another state, Unavailable if no cluster has room.
        """

    def stage_image(self, ctxt: RequestContext, image_id: str, data: ImageData) -> None:
        """Store that the API has the data of a queued image, which is 'uploading' from now on.

        Raises Conflict for an image in another state.
        """

    def import_staged_image(self, ctxt: RequestContext, image_id: str) -> None:
        """Have clusters fetch what was staged; the image is 'importing' from now on.

        Raises Conflict for an image in another state, Unavailable if no cluster has room.
        """

    def begin_image_download(self, ctxt: RequestContext, image_id: str, uri: str) -> str:
        """Store that the API downloads the data of a queued image; return the task's id.

        The image is 'importing', and 'queued' again if no progress is reported for a while. Raises
        Conflict for an image in another state.
        """

    def renew_image_download(self, ctxt: RequestContext, image_id: str, task_id: str) -> None:
        """Report that a download is in progress. Raises Conflict if it was given up."""

    def fail_image_download(
        self, ctxt: RequestContext, image_id: str, task_id: str, why: str
    ) -> None:
        """Report that a download has failed: the image is 'queued' again. Raises Conflict."""

    def tag_image(self, ctxt: RequestContext, image_id: str, tag: str, *, wanted: bool) -> None:
        """Give an image a tag, or take it away. Raises NotFound (the tag), TooLarge."""

    def activate_image(self, ctxt: RequestContext, image_id: str, *, wanted: bool) -> None:
        """Activate or deactivate an image for new servers. Raises Forbidden in other states."""

    def create_metadef_namespace(
        self, ctxt: RequestContext, namespace: MetadefNamespace, items: list[MetadefItem]
    ) -> None:
        """Create a namespace with its definitions. Raises Conflict if the name is in use."""

    def update_metadef_namespace(
        self, ctxt: RequestContext, name: str, namespace: MetadefNamespace
    ) -> None:
        """Change a namespace, also its name. Raises NotFound, Conflict if the name is in use."""

    def delete_metadef_namespace(self, ctxt: RequestContext, name: str) -> None:
        """Delete a namespace with its definitions. Raises NotFound, Forbidden if protected."""

    def change_metadef_items(
        self,
        ctxt: RequestContext,
        namespace: str,
        kind: str,
        removed: list[str] | None,
        items: list[MetadefItem],
    ) -> None:
        """Remove definitions from a namespace, and add others; those of both lists are changed.

        ``removed``: the names; None: all of the kind. Raises NotFound for a name to remove that
        doesn't exist, Conflict for a name to add that does, Forbidden to remove from a protected
        namespace.
        """

    def create_image_member(self, ctxt: RequestContext, image_id: str, member: str) -> None:
        """Share an image with a project. Raises Conflict if it is shared already, TooLarge."""

    def update_image_member(
        self, ctxt: RequestContext, image_id: str, member: str, status: str
    ) -> None:
        """Store what a project said to an image shared with it. Raises NotFound."""

    def delete_image_member(self, ctxt: RequestContext, image_id: str, member: str) -> None:
        """Share an image with a project no more. Raises NotFound."""
