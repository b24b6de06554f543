"""Query strings of candidates, read into values."""

from __future__ import annotations

from urllib.parse import parse_qs

import pytest

from common.context import RequestContext
from common.errors import Invalid
from placement import queries
from placement.errors import BadParameter, DuplicateParameter, MissingParameter
from placement.microversions import VERSIONS
from placement.operation import Call
from placement.request import Group, Query

ONE = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
NEWEST = VERSIONS.newest
TWO = "9fa85f64-5717-4562-b3fc-2c963f66afa7"


def a_call(query: str, version: int = NEWEST) -> Call:
    context = RequestContext(overwrite=False)
    pairs = parse_qs(query, keep_blank_values=True)
    return Call(version, context, "", "http://here", pairs, lambda: b"")


def asked(query: str, version: int = NEWEST) -> Query:
    return queries.candidates_query(a_call(query, version))


def test_everything_of_one_group() -> None:
    query = asked(
        "resources=VCPU:2,MEMORY_MB:512&required=CUSTOM_A,!CUSTOM_B&required=in:CUSTOM_C,CUSTOM_D"
        f"&member_of=in:{ONE},{TWO}&member_of=!{TWO}&in_tree={ONE}&limit=5&root_required=CUSTOM_E"
    )
    assert query == Query(
        groups=(
            Group(
                resources={"VCPU": 2, "MEMORY_MB": 512},
                required=(frozenset({"CUSTOM_A"}), frozenset({"CUSTOM_C", "CUSTOM_D"})),
                forbidden=frozenset({"CUSTOM_B"}),
                member_of=(frozenset({ONE, TWO}),),
                forbidden_aggregates=frozenset({TWO}),
                in_tree=ONE,
            ),
        ),
        limit=5,
        root_required=frozenset({"CUSTOM_E"}),
    )


def test_groups_by_name() -> None:
    query = asked("resources_A=VCPU:1&required_B=CUSTOM_A&same_subtree=_A,_B&group_policy=isolate")
    assert [group.suffix for group in query.groups] == ["_A", "_B"]
    assert query.isolate
    assert query.same_subtrees == (frozenset({"_A", "_B"}),)


def test_before_it_could_be_repeated_the_last_required_counts() -> None:
    query = asked("resources=VCPU:1&required=CUSTOM_A&required=CUSTOM_B", 38)
    assert query.groups[0].required == (frozenset({"CUSTOM_B"}),)


@pytest.mark.parametrize(
    ("query", "version", "sentence"),
    [
        ("resources=", NEWEST, "Got: empty string"),
        ("resources=VCPU", NEWEST, "Badly formed resources parameter"),
        ("resources=VCPU:1:2", NEWEST, "Badly formed resources parameter"),
        ("resources=VCPU:x", NEWEST, "expected positive integer amount. Got: x"),
        ("resources=VCPU:0", NEWEST, "requires amount >= 1. Got: 0"),
        ("resources=VCPU:1&required=", NEWEST, "Got an empty trait in"),
        ("resources=VCPU:1&required=A,!", NEWEST, "Got an empty trait in"),
        ("resources=VCPU:1&required=!A", 21, "Expected 'required' parameter value"),
        ("resources=VCPU:1&required=in:A", 38, "only supported since microversion 1.39"),
        ("resources=VCPU:1&required=in:A,!B", NEWEST, "does not support forbidden traits"),
        ("resources=VCPU:1&required=in:A,", NEWEST, "Got an empty trait in"),
        ("resources=VCPU:1&required=A,!A", NEWEST, "Conflicting required and forbidden"),
        ("resources=VCPU:1&member_of=x", NEWEST, r"valid UUID\(s\). Got: x"),
        (f"resources=VCPU:1&member_of={ONE},{TWO}", NEWEST, "must be prefixed with the 'in:'"),
        (f"resources=VCPU:1&member_of=!{ONE}", 31, "Forbidden member_of parameters"),
        (f"resources=VCPU:1&member_of={ONE}&member_of={TWO}", 23, "Multiple member_of"),
        ("resources=VCPU:1&in_tree=x", NEWEST, "Expected 'in_tree' parameter"),
        ("resources1=VCPU:1&resources2=VCPU:1", NEWEST, '"group_policy" parameter is required'),
        ("resources=VCPU:1&required1=A", 35, "orphaned traits keys: required1"),
        (f"resources=VCPU:1&member_of1={ONE}", 35, "orphaned member_of keys: member_of1"),
        (f"resources=VCPU:1&in_tree1={ONE}", 35, "All request groups must specify"),
        ("limit=1", 35, "At least one request group"),
    ],
)
def test_what_is_refused(query: str, version: int, sentence: str) -> None:
    with pytest.raises(Invalid, match=sentence):
        asked(query, version)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("required=A", MissingParameter),
        ("resources=VCPU:1&required1=A", BadParameter),
        ("resources1=VCPU:1&same_subtree=1,2", BadParameter),
        ("resources1=VCPU:1&same_subtree=1,", BadParameter),
        ("resources=VCPU:1&root_required=A,!A", BadParameter),
        ("resources=VCPU:1&root_required=A&root_required=B", DuplicateParameter),
    ],
)
def test_refusals_with_codes_of_their_own(query: str, error: type[Invalid]) -> None:
    with pytest.raises(error):
        asked(query)


def test_the_list_of_providers_is_filtered_only_where_asked() -> None:
    assert queries.provider_filter(a_call("name=one")) is None
    group = queries.provider_filter(a_call(f"in_tree={ONE}&resources=VCPU:1"))
    assert group == Group(resources={"VCPU": 1}, in_tree=ONE)
