from __future__ import annotations

import pytest

from dashboard.answer import view
from dashboard.navigation import navigation
from dashboard.page import Page, Section
from dashboard.rights import May

SECTIONS = [
    Section(title, (Page(path, lambda _: view("x.html")),), within=within)
    for title, path, within in (
        ("Overview", "/", ""),
        ("Servers", "/servers", ""),
        ("Key pairs", "/keypairs", "Servers"),
        ("Server groups", "/server-groups", "Servers"),
        ("Images", "/images", ""),
    )
]


@pytest.mark.parametrize(
    ("path", "subject", "related"),
    [
        ("/", ("Overview", "page"), []),
        ("/images/1", ("Images", "page"), []),
        ("/servers", ("Servers", "page"), [("Servers", "page"), "Key pairs", "Server groups"]),
        ("/servers/1/x", ("Servers", "page"), [("Servers", "page"), "Key pairs", "Server groups"]),
        ("/keypairs", ("Servers", "true"), ["Servers", ("Key pairs", "page"), "Server groups"]),
        (
            "/server-groups/1",
            ("Servers", "true"),
            ["Servers", "Key pairs", ("Server groups", "page")],
        ),
        ("/elsewhere", None, []),
    ],
)
def test_the_present_page_is_marked(path: str, subject: object, related: list[object]) -> None:
    found = navigation(SECTIONS, path)
    assert [one.title for one in found.subjects] == ["Overview", "Servers", "Images"]
    marked = [(one.title, one.current) for one in found.subjects if one.current]
    assert marked == ([subject] if subject else [])
    shown = [(one.title, one.current) if one.current else one.title for one in found.related]
    assert shown == related


def test_every_subject_that_leads_to_others_exists() -> None:
    from dashboard.sections import SECTIONS as all_of_them

    subjects = {one.title for one in all_of_them if not one.within}
    assert {one.within for one in all_of_them if one.within} <= subjects


def test_a_phone_folds_what_only_some_users_have() -> None:
    def folded(*may: May) -> list[str]:
        sections = [
            Section(f"{one.name} {number}", (Page(f"/{number}", lambda _: view("x.html")),), one)
            for number, one in enumerate(may)
        ]
        found = navigation(sections, "/1")
        assert len(found.subjects) == len(may)
        return [one.title for one in found.folded]

    assert folded(May.READ, May.OPERATE, May.MANAGE, May.READ) == ["OPERATE 1", "MANAGE 2"]
    assert folded(May.READ, May.MANAGE) == [], "one alone needs no menu"
    assert folded(May.READ, May.READ) == []
