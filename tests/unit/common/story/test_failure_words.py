"""What owners read of failures of other resources than servers."""

from __future__ import annotations

import shlex

import pytest

from common.failures import RULES, remedy
from common.messages.reports import Category, Failure
from common.resources.states import ResourceType
from common.story.failure_words import NOUNS, SENTENCES, owner_sentence


@pytest.mark.parametrize("category", Category)
def test_no_other_resource_is_called_a_server(category: Category) -> None:
    assert owner_sentence(category, ResourceType.SERVER) == RULES[category].user
    for resource_type, noun in NOUNS.items():
        said = owner_sentence(category, resource_type)
        assert "server" not in said
        assert noun in said or category not in SENTENCES


def test_a_volume_that_could_not_be_made() -> None:
    said = owner_sentence(Category.CREATION_FAILED, ResourceType.VOLUME)
    assert said == "The storage could not complete the volume."


def test_a_task_is_one_word_of_the_command_that_shows_it() -> None:
    upid = "UPID:pve1:0001:0002:0003:qmstart:100:micronova@pve!micronova:"
    failure = Failure(category=Category.CREATION_FAILED, message="Failed.", upid=upid)
    text = str(remedy(failure, "start", "s"))
    line = text.partition("; ")[0].partition(": ")[2]
    # bash takes an exclamation mark for a command that was typed before, but not in quotes
    assert line == f"pvenode task log '{upid}'"
    assert shlex.split(line)[-1] == upid
