"""The RPC endpoint of images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.context import RequestContext
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.images import remove_image, store_image
from conductor.rpc.images import ImageData, ImageEdit, MetadefItem, MetadefNamespace, NewImage
from conductor.store import call_answers
from conductor.store.images import image_members, imports, metadefs, user_images
from conductor.store.images.server_images import QUEUED
from conductor.store.quotas import image_quotas
from conductor.store.transactions import Transaction


class ImageEndpoint:
    """See ``conductor.rpc.ImageRpc``."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def create_image(self, ctxt: RequestContext, image: NewImage) -> str:
        def work(connection: Transaction) -> str:
            one_more = {"image_count_total": 1}
            image_quotas.take(connection, image.project_id, self._cloud.conf, one_more)
            made = user_images.create(connection, image)
            if image.id is not None:
                call_answers.note(connection, made)
            return made

        return self._cloud.store.run(work)

    def edit_image(self, ctxt: RequestContext, image_id: str, edits: list[ImageEdit]) -> None:
        self._with(ctxt, image_id, lambda c, row: user_images.edit(c, row, edits))

    def delete_image(self, ctxt: RequestContext, image_id: str) -> None:
        remove_image.delete(self._cloud, ctxt, image_id)

    def save_image(
        self, ctxt: RequestContext, image_id: str, data: ImageData, task_id: str | None = None
    ) -> None:
        def work(connection: Transaction, row: Any) -> None:
            if task_id is not None:
                imports.require(row, task_id)
            was = QUEUED if task_id is None else imports.IMPORTING
            store_image.begin(connection, self._cloud, ctxt, row, data, was)

        self._with(ctxt, image_id, work)
        self._cloud.wake()

    def stage_image(self, ctxt: RequestContext, image_id: str, data: ImageData) -> None:
        def work(connection: Transaction, row: Any) -> None:
            waits = {"image_stage_total": data.size_bytes, "image_count_uploading": 1}
            image_quotas.take(connection, row.project_id, self._cloud.conf, waits)
            imports.stage(connection, ctxt, row, data)

        self._with(ctxt, image_id, work)

    def import_staged_image(self, ctxt: RequestContext, image_id: str) -> None:
        def work(connection: Transaction, row: Any) -> None:
            data = imports.begin_staged(connection, ctxt, row)
            store_image.begin(connection, self._cloud, ctxt, row, data, imports.UPLOADING)

        self._with(ctxt, image_id, work)
        self._cloud.wake()

    def begin_image_download(self, ctxt: RequestContext, image_id: str, uri: str) -> str:
        def work(connection: Transaction) -> str:
            row = user_images.locked(connection, image_id, scope(ctxt))
            one_more = {"image_count_uploading": 1}
            image_quotas.take(connection, row.project_id, self._cloud.conf, one_more)
            task_id = imports.begin_download(connection, ctxt, row, uri)
            call_answers.note(connection, task_id)
            return task_id

        return self._cloud.store.run(work)

    def renew_image_download(self, ctxt: RequestContext, image_id: str, task_id: str) -> None:
        self._with(ctxt, image_id, lambda c, row: imports.renew(c, row, task_id))

    def fail_image_download(
        self, ctxt: RequestContext, image_id: str, task_id: str, why: str
    ) -> None:
        self._with(ctxt, image_id, lambda c, row: imports.fail(c, row, task_id, why))

    def tag_image(self, ctxt: RequestContext, image_id: str, tag: str, *, wanted: bool) -> None:
        self._with(ctxt, image_id, lambda c, row: user_images.tag(c, row, tag, wanted=wanted))

    def activate_image(self, ctxt: RequestContext, image_id: str, *, wanted: bool) -> None:
        self._with(ctxt, image_id, lambda c, row: user_images.activate(c, row, wanted=wanted))

    def create_image_member(self, ctxt: RequestContext, image_id: str, member: str) -> None:
        self._with(ctxt, image_id, lambda c, row: image_members.create(c, row, member))

    def update_image_member(
        self, ctxt: RequestContext, image_id: str, member: str, status: str
    ) -> None:
        def work(connection: Transaction) -> None:
            row = user_images.locked(connection, image_id, None)
            image_members.change(connection, row, member, status, scope(ctxt))

        self._cloud.store.run(work)

    def delete_image_member(self, ctxt: RequestContext, image_id: str, member: str) -> None:
        self._with(ctxt, image_id, lambda c, row: image_members.delete(c, row, member))

    def create_metadef_namespace(
        self, ctxt: RequestContext, namespace: MetadefNamespace, items: list[MetadefItem]
    ) -> None:
        self._cloud.store.run(lambda c: metadefs.create(c, namespace, items))

    def update_metadef_namespace(
        self, ctxt: RequestContext, name: str, namespace: MetadefNamespace
    ) -> None:
        self._cloud.store.run(lambda c: metadefs.update(c, name, namespace))

    def delete_metadef_namespace(self, ctxt: RequestContext, name: str) -> None:
        self._cloud.store.run(lambda c: metadefs.delete(c, name))

    def change_metadef_items(
        self,
        ctxt: RequestContext,
        namespace: str,
        kind: str,
        removed: list[str] | None,
        items: list[MetadefItem],
    ) -> None:
        self._cloud.store.run(lambda c: metadefs.change(c, namespace, kind, removed, items))

    def _with(
        self, ctxt: RequestContext, image_id: str, work: Callable[[Transaction, Any], None]
    ) -> None:
        """Do the work on an image of who asks, whose row is locked. Raises ImageNotFound."""
        self._cloud.store.run(lambda c: work(c, user_images.locked(c, image_id, scope(ctxt))))
