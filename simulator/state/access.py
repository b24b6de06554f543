"""Users, tokens, tickets and permissions of one cluster."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from simulator.digits import is_digits
from simulator.errors import PveError, forbidden, unauthorized

TICKET_SECONDS = 7200
CONSOLE_TICKET_SECONDS = 40


@dataclass
class Token:
    """An API token of a user."""

    tokenid: str
    secret: str
    privsep: bool = True
    comment: str = ""
    expire: int = 0
    revoked: bool = False


@dataclass
class User:
    """A user, with a salted password hash unless it can't log in."""

    userid: str
    password: str = ""
    enable: bool = True
    comment: str = ""
    expire: int = 0
    totp: str = ""
    """The shared secret of one-time codes, in hexadecimal digits; empty: no second factor."""
    tokens: dict[str, Token] = field(default_factory=dict)


@dataclass
class Grant:
    """One line of the access control list."""

    path: str
    ugid: str
    type: str
    roleid: str
    propagate: bool = True


@dataclass(frozen=True)
class Identity:
    """The user who asks, by ticket or by one of their tokens."""

    user: str
    tokenid: str = ""

    @property
    def authid(self) -> str:
        """The name that Proxmox VE calls `authuser`: user, or user!token."""
        return f"{self.user}!{self.tokenid}" if self.tokenid else self.user

    @property
    def root(self) -> bool:
        """Return whether this is the literal root@pam, which no token is."""
        return self.authid == "root@pam"


def hash_password(password: str, salt: str) -> str:
    """Return a salted hash; passwords here are random, so one round of PBKDF2 is enough."""
    digest = hashlib.pbkdf2_hmac("sha256", password.encode(), salt.encode(), 1000)
    return f"{salt}${digest.hex()}"


def new_secret() -> str:
    """Return the secret of a new token."""
    return str(uuid.uuid4())


def one_time_code(secret: str, moment: float) -> str:
    """Return the six digits of a time (RFC 6238: SHA-1, 30 seconds)."""
    counter = int(moment // 30).to_bytes(8, "big")
    digest = hmac.new(bytes.fromhex(secret), counter, hashlib.sha1).digest()
    offset = digest[-1] & 15
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return f"{number % 1_000_000:06}"


class Access:
    """Who may do what; privileges are cached until something changes."""

    def __init__(self, roles: dict[str, frozenset[str]], secret: bytes) -> None:
        self.users: dict[str, User] = {}
        self.grants: list[Grant] = []
        self.roles = roles
        self.builtin = frozenset(roles)
        self.pool_of: dict[int, str] = {}
        self._secret = secret
        self._cache: dict[tuple[str, str], frozenset[str]] = {}

    def changed(self) -> None:
        """Forget cached privileges."""
        self._cache.clear()

    def authenticate_token(self, text: str) -> Identity:
        """Return whose token follows `PVEAPIToken=`. Raises 401 if it is wrong."""
        authid, _equals, secret = text.partition("=")
        userid, bang, tokenid = authid.partition("!")
        user = self.users.get(userid)
        token = user.tokens.get(tokenid) if user is not None and bang else None
        if user is None or token is None or not user.enable or token.revoked:
            raise unauthorized("Authentication failed!")
        if token.expire and token.expire < time.time():
            raise unauthorized("Authentication failed!")
        if not hmac.compare_digest(token.secret, secret):
            raise unauthorized("Authentication failed!")
        return Identity(userid, tokenid)

    def login(self, username: str, password: str) -> Identity:
        """Return who a password belongs to; a wrong one gives a 401 with a body."""
        user = self.users.get(username)
        if user is not None and user.enable and user.password:
            salt = user.password.partition("$")[0]
            if hmac.compare_digest(user.password, hash_password(password, salt)):
                return Identity(username)
            if self._ticket_user(password) == username:
                return Identity(username)
        raise PveError("authentication failure", 401)

    def challenge(self, userid: str) -> str:
        """Return what is no login cookie before the second factor was shown."""
        plain = f"PVE:!tfa!{userid}:{int(time.time()):08X}"
        return f"{plain}::{self._sign(plain)}"

    def second_factor(self, username: str, challenge: str, response: str) -> Identity:
        """Return who answered a challenge; a wrong answer gives a 401 with a body."""
        user, now = self.users.get(username), time.time()
        kind, _, code = response.partition(":")
        if (
            user is not None
            and kind == "totp"
            and self._ticket_user(challenge) == f"!tfa!{username}"
        ):
            # the one before, too: a person types slowly
            known = [one_time_code(user.totp, now - late) for late in (0, 30)]
            if any(hmac.compare_digest(code, one) for one in known):
                return Identity(username)
        raise PveError("authentication failure", 401)

    def ticket(self, userid: str) -> str:
        """Return a login cookie, good for two hours."""
        plain = f"PVE:{userid}:{int(time.time()):08X}"
        return f"{plain}::{self._sign(plain)}"

    def csrf(self, userid: str) -> str:
        """Return the CSRF token that every write with a ticket must carry."""
        plain = f"{int(time.time()):08X}"
        return f"{plain}:{self._sign(f'csrf:{plain}:{userid}')}"

    def authenticate_ticket(self, ticket: str) -> Identity:
        """Return who a login cookie belongs to."""
        userid = self._ticket_user(ticket)
        if userid is None or userid not in self.users or not self.users[userid].enable:
            raise unauthorized("Authentication failed!")
        return Identity(userid)

    def check_csrf(self, userid: str, token: str) -> None:
        """Check the CSRF token of a write with a ticket."""
        plain, _colon, signature = token.partition(":")
        if not hmac.compare_digest(self._sign(f"csrf:{plain}:{userid}"), signature):
            raise unauthorized("Permission denied - invalid csrf token")

    def _ticket_user(self, ticket: str) -> str | None:
        plain, _colons, signature = ticket.partition("::")
        parts = plain.split(":")
        if len(parts) != 3 or not hmac.compare_digest(self._sign(plain), signature):
            return None
        try:
            issued = int(parts[2], 16)
        except ValueError:
            return None
        return parts[1] if time.time() - issued < TICKET_SECONDS else None

    def console_ticket(self, authid: str, path: str, port: int) -> str:
        """Return a ticket for a console's port, bound to who asked for it and to the path."""
        plain = f"PVEVNC:{int(time.time()):08X}"
        return f"{plain}::{self._sign(f'{plain}:{authid}:{path}:{port}')}"

    def check_console_ticket(self, ticket: str, authid: str, path: str, port: int) -> None:
        """Check a console's ticket. Raises 401 if it is another one's, or too old."""
        plain, _colons, signature = ticket.partition("::")
        wanted = self._sign(f"{plain}:{authid}:{path}:{port}")
        if not hmac.compare_digest(wanted, signature):
            raise PveError("permission denied - invalid PVEVNC ticket", 401)
        if time.time() - int(plain.partition(":")[2], 16) > CONSOLE_TICKET_SECONDS:
            raise PveError("permission denied - invalid PVEVNC ticket", 401)

    def _sign(self, text: str) -> str:
        digest = hmac.new(self._secret, text.encode(), hashlib.sha256).digest()
        return base64.b64encode(digest).decode()

    def privileges(self, who: Identity, path: str) -> frozenset[str]:
        """Return the privileges of an identity on a path."""
        key = (who.authid, path)
        found = self._cache.get(key)
        if found is None:
            if len(self._cache) > 200_000:
                self._cache.clear()
            found = self._cache[key] = self._compute(who, path)
        return found

    def _compute(self, who: Identity, path: str) -> frozenset[str]:
        user = self._all() if who.user == "root@pam" else self._granted(who.user, "user", path)
        if not who.tokenid:
            return user
        owner = self.users.get(who.user)
        token = owner.tokens.get(who.tokenid) if owner is not None else None
        if token is None:
            return frozenset()
        return user & self._granted(who.authid, "token", path) if token.privsep else user

    def _all(self) -> frozenset[str]:
        return self.roles["Administrator"]

    def _granted(self, ugid: str, kind: str, path: str) -> frozenset[str]:
        found = self._by_path(ugid, kind, path)
        if path.startswith("/vms/"):
            vmid = path[5:]
            pool = self.pool_of.get(int(vmid)) if is_digits(vmid) else None
            if pool is not None:
                found |= self._by_path(ugid, kind, f"/pool/{pool}")
        return found

    def _by_path(self, ugid: str, kind: str, path: str) -> frozenset[str]:
        best: frozenset[str] = frozenset()
        depth = -1
        for grant in self.grants:
            if grant.ugid != ugid or grant.type != kind:
                continue
            exact = grant.path == path
            prefix = grant.path if grant.path.endswith("/") else grant.path + "/"
            if not exact and not (grant.propagate and path.startswith(prefix)):
                continue
            privileges = self.roles.get(grant.roleid, frozenset())
            if len(grant.path) > depth:
                best, depth = privileges, len(grant.path)
            elif len(grant.path) == depth:
                best |= privileges
        return best

    def has(self, who: Identity, path: str, *privileges: str) -> bool:
        """Return whether an identity has any of the privileges on a path."""
        have = self.privileges(who, path)
        return any(privilege in have for privilege in privileges)

    def require(self, who: Identity, path: str, *privileges: str) -> None:
        """Raise 403 unless the identity has any of the privileges on a path."""
        if not self.has(who, path, *privileges):
            raise forbidden(path, *privileges)

    def require_vm(self, who: Identity, vmid: int, pool: str | None, *privileges: str) -> None:
        """Raise 403 unless the identity has any of the privileges on the VM or its pool."""
        if pool and self.has(who, f"/pool/{pool}", *privileges):
            return
        self.require(who, f"/vms/{vmid}", *privileges)

    def dump(self, who: Identity) -> dict[str, dict[str, int]]:
        """Return all paths on which the identity has privileges, with these privileges."""
        paths: Iterable[str] = {grant.path for grant in self.grants}
        if who.user == "root@pam" or "/" in paths:
            paths = {*paths, *_PATHS}
        found = {path: self.privileges(who, path) for path in paths}
        return {
            path: dict.fromkeys(sorted(privileges), 1)
            for path, privileges in sorted(found.items())
            if privileges
        }

    def make_token(self, userid: str, tokenid: str, privsep: bool) -> Token:
        """Create a token with a random secret."""
        token = Token(tokenid, new_secret(), privsep)
        self.users[userid].tokens[tokenid] = token
        self.changed()
        return token


_PATHS = (
    "/",
    "/access",
    "/access/groups",
    "/access/realm",
    "/mapping",
    "/nodes",
    "/pool",
    "/sdn",
    "/storage",
    "/vms",
)
