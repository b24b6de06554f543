"""Deletes images of projects, and has the templates and files removed that hold them."""

from __future__ import annotations

from common.context import RequestContext
from common.log import logger
from conductor.cloud import Cloud
from conductor.engine.access import scope
from conductor.images import remove_file, remove_template
from conductor.plans import Place
from conductor.store.images import server_images, templates, user_images
from conductor.store.images.templates import RETIRING
from conductor.store.transactions import Transaction

LOG = logger(__name__)


def delete(cloud: Cloud, ctxt: RequestContext, image_id: str) -> None:
    """See ``ConductorRpc.delete_image``."""

    def work(connection: Transaction) -> None:
        row = user_images.delete(connection, image_id, scope(ctxt))
        remove_file.begin_all(connection, cloud, row)
        if row.status in {server_images.ACTIVE, server_images.DEACTIVATED}:
            retire(connection, cloud, image_id)
        # Else an operation is at work on it, and finds it gone.

    cloud.store.run(work)
    cloud.wake()
    LOG.info("Image %s is deleted.", image_id)


def drop(connection: Transaction, cloud: Cloud, image_id: str) -> None:
    """Delete an image, if it is there, and begin to remove its template."""
    server_images.delete(connection, image_id)
    retire(connection, cloud, image_id)


def retire(connection: Transaction, cloud: Cloud, image_id: str) -> None:
    """Begin to remove the template of a deleted image.

    A template that servers were cloned from is removed when the last of them is deleted.
    """
    known = server_images.template_of(connection, image_id)
    if known is None or known.retiring or server_images.has_servers(connection, image_id):
        return
    agent = remove_template.agent_of(connection, cloud, known.cluster, known.node)
    host = None if agent is None else agent[0]
    where = Place(host, None, known.cluster, known.node, known.vmid)
    if remove_template.begin(connection, cloud, where, image_id) is not None:
        templates.mark(connection, known, RETIRING)
