"""A port of a network: another one, what it is, its changes, and its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common.errors import NotFound
from common.resources.security_rules import DEFAULT
from dashboard.answer import Answer, Redirect, View, confirm
from dashboard.cloud import COMPUTE, NETWORK, Call, rows, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages.networks import forms
from dashboard.pages.networks.one import API, MOST, PATH, SUBNETS
from dashboard.rights import May
from dashboard.visit import Visit

PORTS, GROUPS = "/v2.0/ports", "/v2.0/security-groups"
_NEW = ("name", "description", "subnet", "address", "mac")
_EDITED = ("name", "description")
_GROUP_FIELDS = {"fields": ["id", "name", "project_id", "shared"], "limit": MOST}


def ask_create(visit: Visit) -> Answer:
    """Show the form for another port."""
    return _form(visit, dict.fromkeys(_NEW, ""), None)


def _form(
    visit: Visit,
    given: Mapping[str, str],
    chosen: Sequence[str] | None,
    refused: ApiRefused | None = None,
) -> View:
    found, subnets, groups = visit.cloud.together(
        Call(NETWORK, f"{API}/{_network(visit)}"),
        _subnets(visit),
        Call(NETWORK, GROUPS, _GROUP_FIELDS, optional=True),
    )
    offered = usable(rows(groups, "security_groups"), visit.project_id)
    if chosen is None:
        chosen = [one["id"] for one in offered if one["name"] == DEFAULT]
    values = {
        "network": found["network"],
        "subnets": rows(subnets, "subnets"),
        "groups": offered,
        "chosen": chosen,
        "owns": owns(visit, found["network"]),
        "given": given,
        "refused": refused,
    }
    return View("network/port_create.html", values, status_of(refused))


def _subnets(visit: Visit) -> Call:
    return Call(NETWORK, SUBNETS, {"network_id": visit.params["network_id"]}, optional=True)


def usable(
    groups: Sequence[Mapping[str, Any]], project_id: str, bound: Sequence[str] = ()
) -> list[Mapping[str, Any]]:
    """Return the groups that a port of a project may be in, and those that it is in."""
    return [
        one
        for one in groups
        if one["project_id"] == project_id or one["shared"] or one["id"] in bound
    ]


def owns(visit: Visit, network: Mapping[str, Any]) -> bool:
    """Return whether the user may choose what only the owner of a network may, of its ports."""
    return visit.operates or network["project_id"] == visit.project_id


def create(visit: Visit) -> Answer:
    """Make a port."""
    given = {name: visit.field(name) for name in _NEW}
    groups = visit.fields("groups")
    body = forms.new_port(
        given, groups if visit.field("filtered") else None, visit.params["network_id"]
    )
    try:
        made = visit.cloud.post(NETWORK, PORTS, {"port": body})["port"]
    except ApiRefused as refused:
        return _form(visit, given, groups, refused)
    visit.note(f"The port {called(made)} is made.")
    return Redirect(f"{_list(visit)}/ports/{made['id']}")


def called(port: Mapping[str, Any]) -> str:
    """Return the name of a port; else its addresses, or its MAC address."""
    return str(port["name"] or _addresses(port) or port["mac_address"])


def _addresses(port: Mapping[str, Any]) -> str:
    return ", ".join(one["ip_address"] for one in port["fixed_ips"])


def show(visit: Visit) -> Answer:
    """Show a port, with the form for its changes."""
    return _show(visit)


def _show(
    visit: Visit, given: Mapping[str, Any] | None = None, refused: ApiRefused | None = None
) -> View:
    found, answer, groups, subnets = visit.cloud.together(
        Call(NETWORK, f"{API}/{_network(visit)}"),
        Call(NETWORK, _path(visit)),
        Call(NETWORK, GROUPS, _GROUP_FIELDS, optional=True),
        _subnets(visit),
    )
    network, port = found["network"], _of_network(visit, answer["port"])
    server = None
    if port["device_id"]:
        path = f"/servers/{segment(port['device_id'])}"
        server = visit.cloud.send(Call(COMPUTE, path, optional=True))
    listed = rows(groups, "security_groups")
    values = {
        "network": network,
        "port": port,
        "called": called(port),
        "server": server["server"] if server else None,
        "names": {one["id"]: one["name"] or one["id"] for one in listed},
        "groups": usable(listed, port["project_id"], port["security_groups"]),
        "subnets": rows(subnets, "subnets"),
        "owns": owns(visit, network),
        "changeable": visit.may(May.CHANGE)
        and (visit.operates or port["project_id"] == visit.project_id),
        "given": given or _given(port),
        "refused": refused,
    }
    return View("network/port.html", values, status_of(refused))


def _of_network(visit: Visit, port: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a port of the path's network. Raises NotFound."""
    if port["network_id"] != visit.params["network_id"]:
        raise NotFound("The network has no such port.")
    return port


def _given(port: Mapping[str, Any]) -> dict[str, Any]:
    """Return a port as the fields of its form."""
    return {
        **{name: port[name] for name in _EDITED},
        "addresses": forms.shown_addresses(port),
        "pairs": forms.shown_pairs(port),
        "filtered": bool(port.get("port_security_enabled")),
        "groups": port["security_groups"],
    }


def change(visit: Visit) -> Answer:
    """Give a port another name, other addresses, groups, or addresses that it may use."""
    given = {
        **{name: visit.field(name) for name in _EDITED},
        "addresses": visit.field("addresses"),
        "pairs": visit.field("pairs"),
        "filtered": bool(visit.field("filtered")),
        "groups": visit.fields("groups"),
    }
    answer, subnets = visit.cloud.together(Call(NETWORK, _path(visit)), _subnets(visit))
    now = _of_network(visit, answer["port"])
    asked = _changes(visit, now, given) | _other_addresses(visit, now, rows(subnets, "subnets"))
    try:
        # without any change the API says that there is no body
        visit.cloud.put(NETWORK, _path(visit), {"port": asked or {"name": given["name"]}})
    except ApiRefused as refused:
        return _show(visit, given, refused)
    visit.note("The port is changed.")
    return Redirect(f"{_list(visit)}/ports/{now['id']}")


def _changes(visit: Visit, now: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is to change, addresses aside; the mark `owner` says which fields there were."""
    asked: dict[str, Any] = {name: given[name] for name in _EDITED}
    filtered = bool(now.get("port_security_enabled"))
    if visit.field("owner"):
        filtered = asked["port_security_enabled"] = given["filtered"]
        pairs = forms.pairs_of(given["pairs"])
        if pairs != forms.pairs_of(forms.shown_pairs(now)):
            asked["allowed_address_pairs"] = pairs
    groups = given["groups"] if filtered else []
    if sorted(groups) != sorted(now["security_groups"]):
        asked["security_groups"] = groups
    return forms.changes(now, asked)


def _other_addresses(
    visit: Visit, now: Mapping[str, Any], subnets: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the port's addresses if they are to change; a form with a field for them has the
    mark `addressed`: while a server has the port, the API doesn't change them."""
    if not visit.field("addressed"):
        return {}
    asked = forms.addresses_of(visit.field("addresses"), subnets)
    same = forms.addresses_of(forms.shown_addresses(now), ())
    return {} if asked == same else {"fixed_ips": asked}


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a port is to be deleted, and say what is lost."""
    port = _of_network(visit, visit.cloud.get(NETWORK, _path(visit))["port"])
    lost, fields = [], {}
    if port["device_id"]:
        fields = {"attached": "1"}
        lost.append("Its server loses this interface: connections to it end.")
    if port["fixed_ips"]:
        lost.append(f"Its address {_addresses(port)} may be given to others.")
    lost.append(f"Its MAC address {port['mac_address']} is lost with it.")
    title, page = f"Delete the port {called(port)}?", f"{_list(visit)}/ports/{port['id']}"
    return confirm(title, " ".join(lost), f"{page}/delete", page, **fields)


def delete(visit: Visit) -> Answer:
    """Delete a port."""
    if visit.field("attached"):
        return _detach(visit)
    said, send = "The port is deleted.", visit.cloud.delete
    return visit.change(_list(visit), said, send, NETWORK, _path(visit), back=_page(visit))


def _detach(visit: Visit) -> Answer:
    """Delete a server's port; the API answers before it is detached."""
    said = "The port is being detached from its server, and is deleted then."
    send = visit.cloud.delete
    return visit.begin(_list(visit), said, send, NETWORK, _path(visit), back=_page(visit))


def _page(visit: Visit) -> str:
    return f"{_list(visit)}/ports/{visit.params['port_id']}"


def _list(visit: Visit) -> str:
    return f"{PATH}/{visit.params['network_id']}"


def _network(visit: Visit) -> str:
    return segment(visit.params["network_id"])


def _path(visit: Visit) -> str:
    return f"{PORTS}/{segment(visit.params['port_id'])}"


_NETWORK = PATH + "/{network_id:uuid}/ports"
_PORT = _NETWORK + "/{port_id:uuid}"
PAGES = (
    Page(f"{_NETWORK}/create", ask_create, May.CHANGE, calls=3),
    Page(f"{_NETWORK}/create", create, May.CHANGE, "POST", calls=4),
    Page(_PORT, show, calls=5),
    Page(_PORT, change, May.CHANGE, "POST", calls=8),
    Page(f"{_PORT}/delete", ask_delete, May.CHANGE),
    Page(f"{_PORT}/delete", delete, May.CHANGE, "POST"),
)
