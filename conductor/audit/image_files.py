"""Compares the files of uploaded images with the record. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from common.messages.inventory import SeenImageFile
from common.resources import image_files as image_files_of
from conductor.audit.facts import Facts, Finding


def image_files(facts: Facts) -> Iterator[Finding]:
    """Yield findings for files without an image, and for images whose file a cluster lacks."""
    us = image_files_of.cloud_in_name(facts.cloud)
    for cluster, inventory in facts.inventories.items():
        for file in inventory.image_files or ():
            if file.cloud != us:
                continue  # another cloud's
            upload = facts.uploads.get(file.image_id)
            wanted = upload is not None and upload.locations.get(cluster) == file.volid
            if not wanted and file.image_id not in facts.busy_images:
                yield _without_image(facts, cluster, file)
        if inventory.image_files is not None and not inventory.short and not inventory.unseen:
            there = {file.volid for file in inventory.image_files}
            yield from _missing(facts, cluster, there)


def _without_image(facts: Facts, cluster: str, file: SeenImageFile) -> Finding:
    ours = file.image_id in facts.uploaded
    text = f"The file of image {file.image_id}, which this cloud "
    text += "doesn't have there." if ours else "never had."
    where = "" if file.shared else f"{file.node}/"
    return Finding(
        "image_file_without_image",
        f"{cluster}/{where}{file.volid}",
        text,
        ours,
        cluster=cluster,
        node=file.node,
        evidence={"volid": file.volid, "image": file.image_id, "bytes": file.size_bytes},
    )


def _missing(facts: Facts, cluster: str, there: Collection[str]) -> Iterator[Finding]:
    for image_id, upload in facts.uploads.items():
        volid = upload.locations.get(cluster)
        if volid is not None and volid not in there and image_id not in facts.busy_images:
            text = f"Image {image_id} is {volid} by the record, which the cluster doesn't list."
            yield Finding(
                "image_without_file",
                f"{cluster}/{volid}",
                text,
                False,
                cluster=cluster,
                evidence={"volid": volid, "image": image_id},
            )
