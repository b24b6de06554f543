"""The page of a story: complete, in one file, and safe whatever a log holds."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from cli.render.page import page
from common.story.matrix import matrix
from tests.unit.cli.render.test_explanation import DECISION, FAULT, an_operation


class Reader(HTMLParser):
    """Collects tags, attributes and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def read(*operations: dict[str, Any]) -> Reader:
    reader = Reader()
    servers = {"u-1": {"name": "web", "status": "ERROR"}}
    reader.feed(page({"subject": "req-1", "operations": list(operations)}, servers))
    return reader


def test_the_page_shows_the_whole_story() -> None:
    text = read(an_operation()).text
    for part in (
        "web",
        "ERROR",
        "create VM",
        "building (scheduling) → building (spawning)",
        "Scheduler: pve2",
        "512 MiB free, 2048 MiB asked",
        "claim pve2: claimed, 2 generation retries, 1 commit retry",
        "storage full on pve2",
        "TASK ERROR: no space",
        "still there: volume local:vm-100123",
        "qm unlock 100123",
    ):
        assert part in text, part


def test_the_bars_lie_where_the_steps_were() -> None:
    styles = [value for name, value in read(an_operation()).attributes if name == "style"]
    assert styles == ["left:0.00%;width:12.50%", "left:50.00%;width:25.00%"]


def test_nothing_is_fetched_and_nothing_becomes_markup() -> None:
    evil = "<script>alert(1)</script>"
    fault = {**FAULT, "message": evil, "log_tail": [evil], "remedy": evil}
    decision = {**DECISION, "refused": {evil: {evil: evil}}}
    reader = read(an_operation(faults=[fault], decisions=[decision], message=evil))
    assert reader.text.count(evil) >= 6
    assert {"script", "link", "img", "iframe"}.isdisjoint(reader.tags)
    assert {"src", "href", "onload"}.isdisjoint(name for name, _ in reader.attributes)


def test_an_owner_sees_no_hosts_and_a_bare_story_is_no_error() -> None:
    owner = {"placed": True, "refused_by": ["image_reach"], "reason": None}
    text = read(an_operation(decisions=[owner])).text
    assert "Scheduler: a host" in text
    assert "refused by: image reach" in text
    assert "considered" not in text
    bare = {"transitions": [{}], "events": [{}], "decisions": [{}], "faults": [{}]}
    assert "Scheduler: nowhere" in read(bare).text


def test_the_matrix_says_who_was_asked() -> None:
    found = matrix(
        {
            "host": "c",
            "refused": {"up": {"a": "silent"}, "ram": {"b": "full"}},
            "scores": {"c": {"ram": 1.0}},
        }
    )
    assert (found.filters, found.weighers) == (("up", "ram", "every other filter"), ("ram",))
    shown = {row.name: [verdict.text for verdict in row.verdicts] for row in found.rows}
    assert shown == {
        "c": ["✓", "✓", "✓"],
        "a": ["silent", "–", "–"],
        "b": ["✓", "full", "–"],
    }
    assert [row.chosen for row in found.rows] == [True, False, False]
    assert [row.scores for row in found.rows] == [(1.0,), (None,), (None,)]


def test_attempts_are_distinguished_and_what_failed_is_open() -> None:
    def step(attempt: int, result: str) -> dict[str, Any]:
        return {
            "name": "compute_start_vm",
            "attempt": attempt,
            "started_at": f"2026-01-31T12:00:0{attempt}.000000",
            "finished_at": f"2026-01-31T12:00:0{attempt}.500000",
            "result": result,
            "detail": {"node": "pve1"},
        }

    decision = {**DECISION, "attempt": 2, "alternates": [{"host": "pve7"}]}
    events = [step(1, "Error"), step(2, "Success")]
    reader = read(an_operation(events=events, decisions=[decision]))
    assert reader.text.count("attempt 2\n") == 1
    assert "attempt 2, 3 hosts considered" in reader.text
    assert "would have done as well: pve7" in reader.text
    # What failed is not folded away: it has a row of its own.
    assert [value for name, value in reader.attributes if name == "class"].count("more") == 1
    assert reader.tags.count("details") == 1


def test_what_distinguished_no_host_has_no_column() -> None:
    scores = {"a": {"ram": 1.0, "total": 1.0, "load": 0.0}, "b": {"ram": 0.0, "total": 0.0}}
    assert matrix({"scores": scores}).weighers == ("ram", "total")


def test_hosts_that_are_all_alike_have_a_matrix_too() -> None:
    scores = {"a": {"ram": 0.0, "total": 0.0}, "b": {"ram": 0.0, "total": 0.0}}
    found = matrix({"host": "a", "scores": scores, "refused": {}})
    assert (found.filters, found.weighers) == (("every filter",), ("total",))
    assert [[verdict.text for verdict in row.verdicts] for row in found.rows] == [["✓"], ["✓"]]
    text = read(an_operation(decisions=[{"host": "a", "scores": scores}])).text
    assert "every filter" in text
    # An owner's names no hosts.
    assert matrix({"placed": True, "refused": {"ram": 1}}).filters == ()


def test_the_title_is_the_servers_name() -> None:
    def title(servers: dict[str, dict[str, str]], *operations: dict[str, Any]) -> str:
        text = page({"subject": "req-1", "operations": list(operations)}, servers)
        return text.split("<title>")[1].split("</title>")[0]

    web, other = an_operation(), an_operation(server="u-2")
    assert title({"u-1": {"name": "web"}}, web, web) == "web"
    assert title({"u-1": {"name": "web"}}, web, other) == "web and 1 more"
    assert title({}, web) == "req-1"


def test_labels_are_words() -> None:
    text = read(an_operation()).text
    for name in ("request_id", "started_at", "compute_create_vm", "conductor_schedule"):
        assert name not in text, name
    for words in ("request", "began", "create VM", "schedule", "VMID: 100123"):
        assert words in text, words


def test_why_no_host_was_found_is_in_the_summary_and_said_once_below() -> None:
    why = "None of 6 hosts has room: 9 MiB RAM asked, 5 MiB free at most (pve2). It would fit."
    refused = {"resources": {"pve1": "4 of 9 MiB RAM free, 9 asked"}}
    body = {"host": None, "considered": 6, "reason": why, "refused": refused}
    fault = {"category": "no_valid_host", "message": why, "log_tail": [], "cleaned": []}
    reader = read(an_operation(decisions=[body], faults=[fault], message=why))
    assert reader.text.count("None of 6 hosts") == 2
    # On a narrow screen each cell says what it is of.
    assert ("data-label", "resources") in reader.attributes
