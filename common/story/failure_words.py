"""What the owner of a resource that is no server reads of a failure."""

from __future__ import annotations

from collections.abc import Mapping

from common.failures import RULES
from common.messages.reports import Category
from common.resources.states import ResourceType

#: nouns of resources that aren't servers
NOUNS: Mapping[str, str] = {
    ResourceType.VOLUME: "volume",
    ResourceType.SNAPSHOT: "snapshot",
    ResourceType.BACKUP: "backup",
    ResourceType.IMAGE: "image",
    ResourceType.TEMPLATE: "image",
    ResourceType.NETWORK: "network",
}

SENTENCES: Mapping[Category, str] = {
    Category.API_NOT_SUPPORTED: "The host has no way to do this to the {noun}.",
    Category.CONFIGURATION: "The host is not configured for this {noun}.",
    Category.AUTHORIZATION: "The cloud is not allowed to do this to the {noun}.",
    Category.NO_VALID_HOST: "No storage can take the {noun}.",
    Category.NODE_UNHEALTHY: "The host of the {noun} failed.",
    Category.TEMPLATE_LOCKED: "The copy of the image that the {noun} needs is locked.",
    Category.LOCK: "The host of the {noun} is busy.",
    Category.STORAGE_CONFLICT: "Left-over storage was in the way of the {noun}.",
    Category.STORAGE_FULL: "The storage has no room for the {noun}.",
    Category.NETWORK: "The network of the {noun} is not available on the host.",
    Category.TASK_TIMEOUT: "The work on the {noun} did not end in time.",
    Category.UNKNOWN_OUTCOME: "The answer about the {noun} was lost.",
    Category.CREATION_FAILED: "The storage could not complete the {noun}.",
    Category.VANISHED: "The disk of the {noun} is no longer there.",
    Category.MARK_LOST: "The notes of the {noun} were changed. It was left as it is.",
    Category.FOREIGN: "The {noun} was replaced by something else. That was left as it is.",
    Category.DISK_LOST: "The disk of the {noun} is no longer there.",
    Category.PROTECTED: "The {noun} is protected from removal. It was left as it is.",
}
"""Of the categories whose sentence for servers speaks of servers or their hosts."""


def owner_sentence(category: Category, resource_type: str) -> str:
    """Return the sentence for the owner of a resource of this type."""
    noun, sentence = NOUNS.get(resource_type), SENTENCES.get(category)
    if noun is None or sentence is None:
        return RULES[category].user
    return sentence.format(noun=noun)
