"""A subnet of a network: another one, its changes, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from common.errors import NotFound
from dashboard.answer import Answer, Redirect, View, confirm
from dashboard.cloud import NETWORK, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages.networks import forms
from dashboard.pages.networks.one import API, PATH, SUBNETS
from dashboard.rights import May
from dashboard.visit import Visit

_EDITED = ("name", "gateway", "servers", "pools", "routes", "dhcp")
_FIELDS = (*_EDITED, "cidr", *forms.MODES)
_MODES = ("slaac", "dhcpv6-stateful", "dhcpv6-stateless")
_NEW: Mapping[str, str] = {**dict.fromkeys(_FIELDS, ""), "dhcp": "1"}


def ask_create(visit: Visit) -> Answer:
    """Show the form for another subnet."""
    return _new(visit, _NEW)


def _new(visit: Visit, given: Mapping[str, str], refused: ApiRefused | None = None) -> View:
    path = f"{API}/{segment(visit.params['network_id'])}"
    network = visit.cloud.get(NETWORK, path)["network"]
    title = f"Add a subnet to {network['name'] or network['id']}"
    return _form(visit, title, f"{_network(visit)}/subnets", given, refused)


def _form(
    visit: Visit,
    title: str,
    action: str,
    given: Mapping[str, str],
    refused: ApiRefused | None,
    *,
    exists: bool = False,
) -> View:
    values = {
        "title": title,
        "action": action,
        "back": _network(visit),
        "exists": exists,
        "first": forms.FIRST,
        "modes": _MODES,
        "given": given,
        "refused": refused,
    }
    return View("network/subnet.html", values, status_of(refused))


def create(visit: Visit) -> Answer:
    """Give the network another subnet."""
    given = {name: visit.field(name) for name in _FIELDS}
    body = {"subnet": forms.new_subnet(given, visit.params["network_id"])}
    try:
        made = visit.cloud.post(NETWORK, SUBNETS, body)["subnet"]
    except ApiRefused as refused:
        return _new(visit, given, refused)
    visit.note(f"The subnet {made['cidr']} is made.")
    return Redirect(_network(visit))


def show(visit: Visit) -> Answer:
    """Show the form for the changes of a subnet."""
    subnet = _subnet(visit)
    return _edit(visit, subnet, forms.shown_subnet(subnet))


def _edit(
    visit: Visit,
    subnet: Mapping[str, Any],
    given: Mapping[str, str],
    refused: ApiRefused | None = None,
) -> View:
    title = f"Subnet {subnet['name'] or subnet['cidr']}"
    page = f"{_network(visit)}/subnets/{subnet['id']}"
    return _form(visit, title, page, given, refused, exists=True)


def _subnet(visit: Visit) -> Mapping[str, Any]:
    """Return the subnet of the path. Raises NotFound, or ApiRefused."""
    found: Mapping[str, Any] = visit.cloud.get(NETWORK, _path(visit))["subnet"]
    if found["network_id"] != visit.params["network_id"]:
        raise NotFound("The network has no such subnet.")
    return found


def change(visit: Visit) -> Answer:
    """Change a subnet: what new servers are given, and the pools of their addresses."""
    subnet = _subnet(visit)
    given = {**forms.shown_subnet(subnet), **{name: visit.field(name) for name in _EDITED}}
    # pools that are sent are checked against the gateway: an unchanged one isn't
    asked = forms.changes(subnet, forms.edited_subnet(given)) or {"name": given["name"]}
    try:
        visit.cloud.put(NETWORK, _path(visit), {"subnet": asked})
    except ApiRefused as refused:
        return _edit(visit, subnet, given, refused)
    visit.note(f"The subnet {subnet['cidr']} is changed.")
    return Redirect(_network(visit))


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a subnet is to be deleted."""
    subnet = _subnet(visit)
    said = (
        "No new server gets an address of this subnet. While a port has one, it can't be deleted."
    )
    page = f"{_network(visit)}/subnets/{subnet['id']}/delete"
    return confirm(f"Delete the subnet {subnet['cidr']}?", said, page, _network(visit))


def delete(visit: Visit) -> Answer:
    """Delete a subnet."""
    said = "The subnet is deleted."
    return visit.change(_network(visit), said, visit.cloud.delete, NETWORK, _path(visit))


def _network(visit: Visit) -> str:
    return f"{PATH}/{visit.params['network_id']}"


def _path(visit: Visit) -> str:
    return f"{SUBNETS}/{segment(visit.params['subnet_id'])}"


_SUBNETS = PATH + "/{network_id:uuid}/subnets"
_SUBNET = _SUBNETS + "/{subnet_id:uuid}"
PAGES = (
    Page(f"{_SUBNETS}/create", ask_create, May.CHANGE),
    Page(_SUBNETS, create, May.CHANGE, "POST", calls=2),
    Page(_SUBNET, show, May.CHANGE),
    Page(_SUBNET, change, May.CHANGE, "POST", calls=2),
    Page(f"{_SUBNET}/delete", ask_delete, May.CHANGE),
    Page(f"{_SUBNET}/delete", delete, May.CHANGE, "POST"),
)
