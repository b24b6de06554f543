"""Parses the query strings of candidates and of the list of providers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from common import digits
from common.errors import Invalid
from common.ids import is_uuid
from placement.errors import BadParameter, DuplicateParameter, MissingParameter
from placement.operation import Call
from placement.request import Group, Query

_KEY = re.compile(r"(resources|required|member_of|in_tree)([a-zA-Z0-9_-]{1,64})?")
_RESOURCES = (
    "Badly formed resources parameter. Expected resources query string parameter in form: "
    "?resources=VCPU:2,MEMORY_MB:1024. Got: {}"
)
_MOST = 2**53
"""The largest amount; sums of it fit into 64 bits."""

Traits = tuple[tuple[frozenset[str], ...], frozenset[str]]


def provider_filter(call: Call) -> Group | None:
    """Return the filter of GET /resource_providers besides name and UUID, or None.

    Raises Invalid.
    """
    if not {"resources", "required", "member_of", "in_tree"} & call.query.keys():
        return None
    return _group(call, "")


def candidates_query(call: Call) -> Query:
    """Return the query of GET /allocation_candidates. Raises Invalid."""
    limit = call.query.get("limit")
    policy = call.query.get("group_policy", [])
    root_required, root_forbidden = _root_traits(call)
    query = Query(
        groups=_groups(call),
        limit=digits.number(limit[0], _MOST) if limit else None,
        isolate=policy[:1] == ["isolate"],
        root_required=root_required,
        root_forbidden=root_forbidden,
        same_subtrees=_same_subtrees(call),
        nested=call.version >= 29,
    )
    _require_resources(call, query)
    if call.version >= 22:
        _refuse_contradictions(query.groups)
    if not policy and sum(bool(group.suffix) for group in query.groups) > 1:
        raise Invalid(
            'The "group_policy" parameter is required when specifying more than one '
            '"resources{N}" parameter.'
        )
    return query


def resources(text: str) -> dict[str, int]:
    """Return {resource class: amount} of "VCPU:2,MEMORY_MB:1024". Raises Invalid."""
    if not text.strip():
        raise Invalid(_RESOURCES.format("empty string."))
    amounts = {}
    for entry in text.split(","):
        name, colon, number = entry.partition(":")
        if not colon or ":" in number:
            raise Invalid(_RESOURCES.format(f"{entry}."))
        amount = digits.integer(number, _MOST)
        if amount is None:
            raise Invalid(
                f"Requested resource {name} expected positive integer amount. Got: {number}."
            )
        if amount < 1:
            raise Invalid(f"Requested resource {name} requires amount >= 1. Got: {amount}.")
        amounts[name] = amount
    return amounts


def traits(text: str, *, forbidden: bool, any_of: bool) -> Traits:
    """Return (sets of alternative traits, forbidden traits) of one `required` value.

    `forbidden` and `any_of` say whether "!TRAIT" and "in:A,B" are allowed. Raises Invalid.
    """
    complaint = "Invalid query string parameters: "
    if text.startswith("in:"):
        names = frozenset(name.strip() for name in text[3:].split(","))
        form = f"{complaint}The format 'in:HW_CPU_X86_VMX,CUSTOM_MAGIC' "
        if not any_of:
            raise Invalid(f"{form}only supported since microversion 1.39. Got: {text}")
        if not all(names):
            raise Invalid(
                f"{complaint}Expected 'required' parameter value of the form: "
                f"in:HW_CPU_X86_VMX,CUSTOM_MAGIC. Got an empty trait in: {text}"
            )
        if any(name.startswith("!") for name in names):
            raise Invalid(f"{form}does not support forbidden traits. Got: {text}")
        return (names,), frozenset()
    entries = [entry.strip() for entry in text.split(",")]
    barred = frozenset(entry.lstrip("!") for entry in entries if entry.startswith("!"))
    form = f"HW_CPU_X86_VMX,{'!' if forbidden else ''}CUSTOM_MAGIC"
    expected = f"{complaint}Expected 'required' parameter value of the form: {form}. "
    if not all(entries) or not all(barred):
        raise Invalid(f"{expected}Got an empty trait in: {text}")
    if barred and not forbidden:
        raise Invalid(f"{expected}Got: {text}")
    return tuple(frozenset((e,)) for e in entries if not e.startswith("!")), barred


def members(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return (alternative aggregates, forbidden aggregates) of one `member_of` value.

    Raises Invalid.
    """
    plain = text.removeprefix("!")
    if "," in plain and not plain.startswith("in:"):
        raise Invalid(
            "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword "
            f"using the valid microversion. Got: {text}"
        )
    uuids = frozenset(plain.removeprefix("in:").split(","))
    for uuid in sorted(uuids):
        if not is_uuid(uuid):
            raise Invalid(
                "Invalid query string parameters: Expected 'member_of' parameter to contain "
                f"valid UUID(s). Got: {uuid}"
            )
    return (frozenset(), uuids) if text.startswith("!") else (uuids, frozenset())


def _groups(call: Call) -> tuple[Group, ...]:
    suffixes = {}
    for key in call.query:
        match = _KEY.fullmatch(key)
        if match:
            suffixes[match[2] or ""] = True
    return tuple(_group(call, suffix) for suffix in suffixes)


def _group(call: Call, suffix: str) -> Group:
    asked = call.last(f"resources{suffix}")
    required, forbidden = _required(call, f"required{suffix}")
    wanted, barred = _member_of(call, f"member_of{suffix}")
    in_tree = call.last(f"in_tree{suffix}")
    if in_tree is not None and not is_uuid(in_tree.strip()):
        raise Invalid(
            "Invalid query string parameters: Expected 'in_tree' parameter to be a format of "
            f"uuid. Got: {in_tree}"
        )
    return Group(
        suffix=suffix,
        resources={} if asked is None else resources(asked),
        required=required,
        forbidden=forbidden,
        member_of=wanted,
        forbidden_aggregates=barred,
        in_tree=None if in_tree is None else in_tree.strip(),
    )


def _required(call: Call, key: str) -> Traits:
    values: Sequence[str] = call.query.get(key, [])
    any_of = call.version >= 39
    # Before it could be repeated, the last one counted.
    parsed = [
        traits(value, forbidden=call.version >= 22, any_of=any_of)
        for value in (values if any_of else values[-1:])
    ]
    wanted = tuple(names for required, _ in parsed for names in required)
    return wanted, frozenset().union(*(forbidden for _, forbidden in parsed))


def _member_of(call: Call, key: str) -> Traits:
    values = call.query.get(key, [])
    if len(values) > 1 and call.version < 24:
        raise Invalid(f"Multiple {key} parameters are not supported")
    parsed = [members(value) for value in values]
    barred = frozenset().union(*(forbidden for _, forbidden in parsed))
    if barred and call.version < 32:
        raise Invalid(
            f"Forbidden {key} parameters are not supported in the specified microversion"
        )
    return tuple(wanted for wanted, _ in parsed if wanted), barred


def _root_traits(call: Call) -> tuple[frozenset[str], frozenset[str]]:
    values = call.query.get("root_required", [])
    if not values:
        return frozenset(), frozenset()
    if len(values) > 1:
        raise DuplicateParameter("Query parameter 'root_required' may be specified only once.")
    wanted, forbidden = traits(values[0], forbidden=True, any_of=False)
    required = frozenset().union(*wanted)
    if required & forbidden:
        raise BadParameter(
            "Conflicting required and forbidden traits found in root_required: "
            f"{', '.join(sorted(required & forbidden))}"
        )
    return required, forbidden


def _same_subtrees(call: Call) -> tuple[frozenset[str], ...]:
    subtrees = tuple(
        frozenset(suffix.strip() for suffix in value.split(","))
        for value in call.query.get("same_subtree", [])
    )
    if any("" in suffixes for suffixes in subtrees):
        raise BadParameter(
            "Empty string (unsuffixed group) can not be specified in `same_subtree` "
        )
    return subtrees


def _require_resources(call: Call, query: Query) -> None:
    """Raise Invalid for a group that asks for no resources where it must."""
    bare = [group for group in query.groups if not group.resources]
    if call.version >= 36:
        _require_subtrees(query, bare)
        return
    orphans = [f"required{group.suffix}" for group in bare if group.required]
    if orphans:
        raise Invalid(
            "All traits parameters must be associated with resources.  Found the following "
            f"orphaned traits keys: {', '.join(orphans)}"
        )
    orphans = [
        f"member_of{group.suffix}"
        for group in bare
        if group.member_of or group.forbidden_aggregates
    ]
    if orphans:
        raise Invalid(
            "All member_of parameters must be associated with resources. Found the following "
            f"orphaned member_of keys: {', '.join(orphans)}"
        )
    if bare:
        raise Invalid("All request groups must specify resources.")
    if not query.groups:
        raise Invalid("At least one request group (`resources` or `resources{$S}`) is required.")


def _require_subtrees(query: Query, bare: Sequence[Group]) -> None:
    """Raise Invalid for a group without resources that no `same_subtree` names."""
    if len(bare) == len(query.groups):
        raise MissingParameter("There must be at least one resources or resources[$S] parameter.")
    together = frozenset().union(*query.same_subtrees)
    strange = [group.suffix for group in bare if group.suffix not in together]
    if strange:
        raise BadParameter(
            "Resourceless suffixed group request should be specified in `same_subtree` "
            f"query param: bad group(s) - {strange}."
        )
    suffixes = [group.suffix for group in query.groups]
    unreal = sorted(together - set(suffixes))
    if unreal:
        raise BadParameter(
            f"Real suffixes should be specified in `same_subtree`: {unreal} not found in "
            f"{suffixes}."
        )


def _refuse_contradictions(groups: Sequence[Group]) -> None:
    contradictions = sorted(
        f"required{group.suffix}: ({', '.join(sorted(names))})"
        for group in groups
        for names in group.required
        if names <= group.forbidden
    )
    if contradictions:
        raise Invalid(
            "Conflicting required and forbidden traits found in the following traits keys: "
            f"{', '.join(contradictions)}"
        )
