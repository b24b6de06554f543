"""Calls about images."""

from __future__ import annotations

from common.context import RequestContext
from conductor.client.base import Base
from conductor.messages import ImageData, ImageEdit, MetadefItem, MetadefNamespace, NewImage
from conductor.rpc_api import ImageRpc


class ImageCalls(Base):
    """See ``conductor.rpc_api.ImageRpc``. All raise ImageNotFound, and Forbidden by Glance."""

    def create_image(self, ctxt: RequestContext, image: NewImage) -> str:
        """Make an image that has no data yet; return its id.

        Raises Conflict if the id is taken or may become that of an operator's file, TooLarge.
        """
        return self._rpc.call(ctxt, ImageRpc.create_image, image=image)

    def edit_image(self, ctxt: RequestContext, image_id: str, edits: list[ImageEdit]) -> None:
        """Change attributes and properties, all or none.

        Raises Conflict for a property that isn't there, TooLarge, and Forbidden for what
        operators' storages and configuration say, and for formats of an image that has data.
        """
        self._rpc.call(ctxt, ImageRpc.edit_image, image_id=image_id, edits=edits)

    def delete_image(self, ctxt: RequestContext, image_id: str) -> None:
        """Delete an image of a project. Raises Forbidden for a protected one."""
        self._rpc.call(ctxt, ImageRpc.delete_image, image_id=image_id)

    def save_image(
        self, ctxt: RequestContext, image_id: str, data: ImageData, task_id: str | None = None
    ) -> None:
        """Have clusters fetch the data of a queued image, which is 'saving' from now on.

        ``task_id``: of the download that brought them; its image stays 'importing'. Raises
        Conflict for an image in another state, Unavailable if no cluster has room.
        """
        self._rpc.call(ctxt, ImageRpc.save_image, image_id=image_id, data=data, task_id=task_id)

    def stage_image(self, ctxt: RequestContext, image_id: str, data: ImageData) -> None:
        """Store that the API has the data of a queued image, which is 'uploading' from now on.

        Raises Conflict for an image in another state.
        """
        self._rpc.call(ctxt, ImageRpc.stage_image, image_id=image_id, data=data)

    def import_staged_image(self, ctxt: RequestContext, image_id: str) -> None:
        """Have clusters fetch what was staged; the image is 'importing' from now on.

        Raises Conflict for an image in another state, Unavailable if no cluster has room.
        """
        self._rpc.call(ctxt, ImageRpc.import_staged_image, image_id=image_id)

    def begin_image_download(self, ctxt: RequestContext, image_id: str, uri: str) -> str:
        """Store that the API downloads the data of a queued image; return the task's id.

        The image is 'importing', and 'queued' again if nothing is heard for a while. Raises
        Conflict for an image in another state.
        """
        return self._rpc.call(ctxt, ImageRpc.begin_image_download, image_id=image_id, uri=uri)

    def keep_image_download(self, ctxt: RequestContext, image_id: str, task_id: str) -> None:
        """Tell that a download goes on. Raises Conflict if it was given up."""
        self._rpc.call(ctxt, ImageRpc.keep_image_download, image_id=image_id, task_id=task_id)

    def fail_image_download(
        self, ctxt: RequestContext, image_id: str, task_id: str, why: str
    ) -> None:
        """Tell that a download has failed: the image is 'queued' again. Raises Conflict."""
        self._rpc.call(
            ctxt, ImageRpc.fail_image_download, image_id=image_id, task_id=task_id, why=why
        )

    def tag_image(self, ctxt: RequestContext, image_id: str, tag: str, *, wanted: bool) -> None:
        """Give an image a tag, or take it away. Raises NotFound (the tag), TooLarge."""
        self._rpc.call(ctxt, ImageRpc.tag_image, image_id=image_id, tag=tag, wanted=wanted)

    def activate_image(self, ctxt: RequestContext, image_id: str, *, wanted: bool) -> None:
        """Let servers be made of an image, or no more. Raises Forbidden in other states."""
        self._rpc.call(ctxt, ImageRpc.activate_image, image_id=image_id, wanted=wanted)

    def create_image_member(self, ctxt: RequestContext, image_id: str, member: str) -> None:
        """Share an image with a project. Raises Conflict if it is so already, TooLarge."""
        self._rpc.call(ctxt, ImageRpc.create_image_member, image_id=image_id, member=member)

    def update_image_member(
        self, ctxt: RequestContext, image_id: str, member: str, status: str
    ) -> None:
        """Store what a project said to an image shared with it. Raises NotFound."""
        self._rpc.call(
            ctxt, ImageRpc.update_image_member, image_id=image_id, member=member, status=status
        )

    def delete_image_member(self, ctxt: RequestContext, image_id: str, member: str) -> None:
        """Share an image with a project no more. Raises NotFound."""
        self._rpc.call(ctxt, ImageRpc.delete_image_member, image_id=image_id, member=member)

    def create_metadef_namespace(
        self, ctxt: RequestContext, namespace: MetadefNamespace, items: list[MetadefItem]
    ) -> None:
        """Make a namespace with what it defines. Raises Conflict for one that is there."""
        call = ImageRpc.create_metadef_namespace
        self._rpc.call(ctxt, call, namespace=namespace, items=items)

    def update_metadef_namespace(
        self, ctxt: RequestContext, name: str, namespace: MetadefNamespace
    ) -> None:
        """Change a namespace, its name too. Raises NotFound, Conflict for the name of another."""
        self._rpc.call(ctxt, ImageRpc.update_metadef_namespace, name=name, namespace=namespace)

    def delete_metadef_namespace(self, ctxt: RequestContext, name: str) -> None:
        """Delete a namespace with what it defines. Raises NotFound, Forbidden if protected."""
        self._rpc.call(ctxt, ImageRpc.delete_metadef_namespace, name=name)

    def change_metadef_items(
        self,
        ctxt: RequestContext,
        namespace: str,
        kind: str,
        removed: list[str] | None,
        items: list[MetadefItem],
    ) -> None:
        """Remove what a namespace defines, and add to it; what comes in place of it is changed.

        ``removed``: the names; None: all of the kind. Raises NotFound for a name that isn't there,
        Conflict for one that is, and Forbidden to remove from a protected namespace.
        """
        self._rpc.call(
            ctxt,
            ImageRpc.change_metadef_items,
            namespace=namespace,
            kind=kind,
            removed=removed,
            items=items,
        )
