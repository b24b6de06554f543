"""Bodies of interfaces; facts from nova's schemas/attach_interfaces.py and multinic.py."""

from __future__ import annotations

from api.compute.schemas.types import IP_ADDRESS, TAG, UUID, Schema, body, changed, query, record

_FIXED_IPS: Schema = {
    "type": "array",
    "minItems": 1,
    "maxItems": 1,
    "items": record({"ip_address": IP_ADDRESS}, ["ip_address"]),
}
_CREATE: Schema = {
    "type": "object",
    "properties": {
        "interfaceAttachment": record({"net_id": UUID, "port_id": UUID, "fixed_ips": _FIXED_IPS})
    },
    "additionalProperties": False,
}
CREATE = {"2.1": _CREATE, "2.49": changed(_CREATE, "interfaceAttachment", tag=TAG)}

LOOK = {"2.1": query({}, more=True), "2.102": query({}, more=False)}

ADD_FIXED_IP = {
    "2.1": body(
        "addFixedIp",
        record(
            {"networkId": {"type": ["string", "number"], "minLength": 1, "maxLength": 36}},
            ["networkId"],
        ),
    )
}
REMOVE_FIXED_IP = {"2.1": body("removeFixedIp", record({"address": IP_ADDRESS}, ["address"]))}
