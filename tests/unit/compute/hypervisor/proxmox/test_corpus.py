"""The error table against the corpus: what Proxmox VE has said, and what is made of it.

``messages.tsv`` holds texts of servers and sources with category and verdict; ``captures.tsv``
names every error in the recorded answers of a real server. A capture that is not named fails: a
new one must be thought about.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.failures import RULES, Verdict, verdict_of
from common.messages.reports import Category, Failure
from compute.hypervisor.proxmox.api.errors import TABLE, ApiError, api_error, category_of
from tests.fixtures.pve_records import responses

HERE = Path(__file__).resolve().parent


def rows(name: str) -> list[list[str]]:
    with (HERE / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


MESSAGES = rows("messages.tsv")[1:]
MEANT = dict(rows("captures.tsv"))


def failure(error: ApiError) -> Failure:
    verdict = None if error.verdict is None else error.verdict.value
    return Failure(error.category, error.message, verdict=verdict)


@pytest.mark.parametrize(("status", "category", "verdict", "text"), MESSAGES)
def test_a_message_means(status: str, category: str, verdict: str, text: str) -> None:
    error = api_error(int(status), text)
    assert error.category == category
    assert verdict_of(failure(error)) == verdict


def test_every_verdict_and_every_category_of_the_driver_is_in_the_corpus() -> None:
    assert {row[2] for row in MESSAGES} == set(Verdict)
    decided_elsewhere = {
        Category.QUOTA_EXCEEDED,
        Category.NO_VALID_HOST,
        Category.TEMPLATE_LOCKED,
        Category.VANISHED,
        Category.MARK_LOST,
        Category.FOREIGN,
        Category.DISK_LOST,
    }
    assert {row[1] for row in MESSAGES} == set(Category) - decided_elsewhere
    assert set(RULES) == set(Category)


def test_every_row_of_the_table_is_needed_by_a_text() -> None:
    texts = [row[3] for row in MESSAGES] + [text for _, _, text in captured()]
    idle = [row.pattern.pattern for row in TABLE if not any(map(row.pattern.search, texts))]
    assert idle == []


def test_every_error_that_was_captured_means_what_was_decided() -> None:
    found = {name: meaning(status, text) for name, status, text in captured()}
    assert found == MEANT


def meaning(status: int, text: str) -> str:
    return category_of(text) if status == 200 else category_of(text, status)


def captured() -> Iterator[tuple[str, int, str]]:
    """Name, status (200: of a task's end) and text of every error on record."""
    for name, answer in responses(1):
        body = answer["body"] if isinstance(answer.get("body"), dict) else {}
        if answer["status"] != 200:
            error = api_error(answer["status"], answer["reason"], body.get("errors"))
            yield name, answer["status"], error.text
            continue
        data = body.get("data")
        status = data.get("exitstatus", "OK") if isinstance(data, dict) else "OK"
        if status != "OK":
            yield name, 200, status
