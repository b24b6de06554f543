"""Users, tokens, roles, grants and tickets over the API."""

from __future__ import annotations

import secrets
from typing import Any

from simulator.errors import PveError, forbidden
from simulator.request.call import Call
from simulator.state.access import Grant, Identity, Token, User, hash_password, new_secret

_CAPABILITIES = {
    "access": ("/access", ("Group.Allocate", "Permissions.Modify", "User.Modify")),
    "dc": ("/", ("SDN.Allocate", "SDN.Audit", "SDN.Use", "Sys.Audit", "Sys.Modify")),
    "mapping": ("/mapping", ("Mapping.", "Permissions.Modify")),
    "nodes": ("/nodes", ("Permissions.Modify", "Sys.")),
    "sdn": ("/sdn", ("Permissions.Modify", "SDN.")),
    "storage": ("/storage", ("Datastore.", "Permissions.Modify")),
    "vms": ("/vms", ("Permissions.Modify", "VM.")),
}


def ticket(call: Call) -> dict[str, Any]:
    """`POST /access/ticket`: return a cookie and a CSRF token for a password."""
    access = call.cluster.access
    name = call.get("username")
    if "@" not in name:
        name = f"{name}@{call.get('realm', 'pam')}"
    challenge = call.get("tfa-challenge")
    if challenge:
        who = access.second_factor(name, challenge, call.get("password"))
    else:
        who = access.login(name, call.get("password"))
        if access.users[name].totp:
            half = access.challenge(name)
            return {"NeedTFA": 1, "ticket": half, "username": name} | {
                "CSRFPreventionToken": access.csrf(name)
            }
    shown: dict[str, Any] = {
        "CSRFPreventionToken": access.csrf(who.user),
        "cap": _capabilities(call, who),
        "ticket": access.ticket(who.user),
        "username": who.user,
    }
    if len(call.cluster.nodes) > 1:
        shown["clustername"] = call.cluster.name
    return shown


def _capabilities(call: Call, who: Identity) -> dict[str, dict[str, int]]:
    shown: dict[str, dict[str, int]] = {}
    for kind, (path, prefixes) in _CAPABILITIES.items():
        have = call.cluster.access.privileges(who, path)
        shown[kind] = {name: 1 for name in sorted(have) if name.startswith(prefixes)}
    return shown


def no_ticket(call: Call) -> None:
    """`GET /access/ticket`: return nothing, as the real server does."""


def permissions(call: Call) -> dict[str, Any]:
    """`GET /access/permissions`: the caller's, or with Sys.Audit on /access another user's."""
    access, wanted = call.cluster.access, call.get("userid")
    who = call.who
    if wanted:
        user, _bang, token = wanted.partition("!")
        if user != who.user:
            access.require(who, "/access", "Sys.Audit")
        who = Identity(user, token)
    if call.get("path"):
        have = access.privileges(who, call.get("path"))
        return {call.get("path"): dict.fromkeys(sorted(have), 1)}
    return access.dump(who)


def users(call: Call) -> list[dict[str, Any]]:
    """`GET /access/users`."""
    access = call.cluster.access
    everyone = access.has(call.who, "/access/groups", "User.Modify", "Sys.Audit")
    return [_user(one) for one in access.users.values() if everyone or one.userid == call.who.user]


def _user(user: User) -> dict[str, Any]:
    shown = {
        "enable": int(user.enable),
        "expire": user.expire,
        "realm-type": user.userid.rpartition("@")[2],
        "userid": user.userid,
    }
    if user.comment:
        shown["comment"] = user.comment
    return shown


def create_user(call: Call) -> None:
    """`POST /access/users`."""
    userid = call.get("userid")
    if not call.cluster.quorate:
        raise PveError("create user failed: cfs-lock 'file-user_cfg' error: no quorum!")
    if userid in call.cluster.access.users:
        raise PveError(f"create user failed: user '{userid}' already exists")
    password = call.get("password")
    hashed = hash_password(password, secrets.token_hex(8)) if password else ""
    enabled = call.get("enable", "1") == "1"
    call.cluster.access.users[userid] = User(userid, hashed, enabled, call.get("comment"))
    call.cluster.save_access()


def change_user(call: Call) -> None:
    """`PUT /access/users/{userid}`."""
    user = _known(call)
    user.enable = call.get("enable", str(int(user.enable))) == "1"
    user.comment = call.params.get("comment", user.comment)
    user.expire = int(call.get("expire", str(user.expire)))
    call.cluster.access.changed()
    call.cluster.save_access()


def delete_user(call: Call) -> None:
    """`DELETE /access/users/{userid}`."""
    _known(call)
    access, userid = call.cluster.access, call.get("userid")
    del access.users[userid]
    access.grants = [one for one in access.grants if one.ugid.partition("!")[0] != userid]
    call.cluster.save_access()


def _known(call: Call) -> User:
    user = call.cluster.access.users.get(call.get("userid"))
    if user is None:
        raise PveError(f"no such user ('{call.get('userid')}')")
    return user


def _own_or_admin(call: Call) -> User:
    if call.get("userid") != call.who.user and not call.cluster.access.has(
        call.who, "/access/groups", "User.Modify"
    ):
        raise forbidden("/access/groups", "User.Modify")
    return _known(call)


def tokens(call: Call) -> list[dict[str, Any]]:
    """`GET /access/users/{userid}/token`."""
    return [{**_token(one), "tokenid": one.tokenid} for one in _own_or_admin(call).tokens.values()]


def _token(token: Token) -> dict[str, Any]:
    shown: dict[str, Any] = {"expire": token.expire, "privsep": int(token.privsep)}
    if token.comment:
        shown["comment"] = token.comment
    return shown


def token(call: Call) -> dict[str, Any]:
    """`GET /access/users/{userid}/token/{tokenid}`."""
    found = _own_or_admin(call).tokens.get(call.get("tokenid"))
    if found is None:
        raise PveError(f"no such token '{call.get('tokenid')}' for user '{call.get('userid')}'")
    return _token(found)


def create_token(call: Call) -> dict[str, Any]:
    """`POST /access/users/{userid}/token/{tokenid}`: the only answer that shows the secret."""
    user, tokenid = _own_or_admin(call), call.get("tokenid")
    if tokenid in user.tokens:
        raise PveError(
            "Parameter verification failed.", 400, errors={"tokenid": "Token already exists."}
        )
    privsep = call.get("privsep", "1") == "1"
    made = call.cluster.access.make_token(user.userid, tokenid, privsep)
    made.comment = call.get("comment")
    made.expire = int(call.get("expire", "0"))
    call.cluster.save_access()
    return {
        "full-tokenid": f"{user.userid}!{tokenid}",
        "info": {"privsep": str(int(privsep))},
        "value": made.secret,
    }


def change_token(call: Call) -> dict[str, Any]:
    """`PUT /access/users/{userid}/token/{tokenid}`; with `regenerate` it has another secret."""
    user, tokenid = _own_or_admin(call), call.get("tokenid")
    found = user.tokens.get(tokenid)
    if found is None:
        raise PveError(f"no such token '{tokenid}' for user '{user.userid}'")
    if call.get("regenerate") == "1":
        found = Token(tokenid, new_secret(), found.privsep, found.comment, found.expire)
        user.tokens[tokenid] = found
    found.privsep = call.get("privsep", str(int(found.privsep))) == "1"
    found.comment = call.get("comment", found.comment)
    found.expire = int(call.get("expire", str(found.expire)))
    call.cluster.access.changed()
    call.cluster.save_access()
    shown = _token(found)
    return shown | ({"value": found.secret} if call.get("regenerate") == "1" else {})


def delete_token(call: Call) -> None:
    """`DELETE /access/users/{userid}/token/{tokenid}`."""
    user, tokenid = _own_or_admin(call), call.get("tokenid")
    if tokenid not in user.tokens:
        raise PveError(f"no such token '{tokenid}' for user '{user.userid}'")
    del user.tokens[tokenid]
    call.cluster.save_access()


def roles(call: Call) -> list[dict[str, Any]]:
    """`GET /access/roles`."""
    access = call.cluster.access
    return [
        {"privs": ",".join(sorted(privs)), "roleid": name, "special": int(name in access.builtin)}
        for name, privs in access.roles.items()
    ]


def create_role(call: Call) -> None:
    """`POST /access/roles`."""
    access, name = call.cluster.access, call.get("roleid")
    if name in access.roles:
        raise PveError(f"create role failed: role '{name}' already exists")
    access.roles[name] = _privileges(call, "create role failed")
    call.cluster.save_access()


def change_role(call: Call) -> None:
    """`PUT /access/roles/{roleid}`: replace the privileges, or with `append` add to them."""
    access, name = call.cluster.access, call.get("roleid")
    if name in access.builtin:
        raise PveError(f"auto-generated role '{name}' cannot be modified")
    if name not in access.roles:
        raise PveError(f"modify role failed: role '{name}' does not exist")
    kept = access.roles[name] if call.flag("append") else frozenset()
    access.roles[name] = kept | _privileges(call, "modify role failed")
    call.cluster.save_access()


def _privileges(call: Call, failed: str) -> frozenset[str]:
    given = frozenset(one for one in call.get("privs").replace(" ", ",").split(",") if one)
    unknown = given - call.cluster.access.roles["Administrator"]
    if unknown:
        raise PveError(f"{failed}: invalid privilege '{min(unknown)}'")
    return given


def delete_role(call: Call) -> None:
    """`DELETE /access/roles/{roleid}`."""
    access, name = call.cluster.access, call.get("roleid")
    if name in access.builtin:
        raise PveError(f"auto-generated role '{name}' cannot be deleted")
    if access.roles.pop(name, None) is None:
        raise PveError(f"delete role failed: role '{name}' does not exist")
    call.cluster.save_access()


def grants(call: Call) -> list[dict[str, Any]]:
    """`GET /access/acl`: the grants that the caller may change."""
    access = call.cluster.access
    return [
        {
            "path": one.path,
            "propagate": int(one.propagate),
            "roleid": one.roleid,
            "type": one.type,
            "ugid": one.ugid,
        }
        for one in access.grants
        if access.has(call.who, one.path, "Permissions.Modify")
    ]


def set_grants(call: Call) -> None:
    """`PUT /access/acl`: give or take roles."""
    access, path = call.cluster.access, call.get("path")
    access.require(call.who, path, "Permissions.Modify")
    for kind, parameter in (("user", "users"), ("token", "tokens")):
        for ugid in [one for one in call.get(parameter).split(",") if one]:
            for role in [one for one in call.get("roles").split(",") if one]:
                if role not in access.roles:
                    raise PveError(f"role '{role}' does not exist")
                kept = [
                    one
                    for one in access.grants
                    if (one.path, one.ugid, one.type, one.roleid) != (path, ugid, kind, role)
                ]
                if not call.flag("delete"):
                    propagate = call.get("propagate", "1") == "1"
                    kept.append(Grant(path, ugid, kind, role, propagate))
                access.grants = kept
    call.cluster.save_access()
