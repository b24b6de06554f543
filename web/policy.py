"""The policy engine: oslo.policy's rules and files, checked in about a microsecond.

oslo.policy loads, parses and reloads; its check trees are compiled into closures here, as its own
`authorize` costs more than the rest of a request.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_policy import _checks as checks
from oslo_policy import opts, policy

from common.context import RequestContext
from common.errors import Forbidden
from common.log import logger

LOG = logger(__name__)

Target = Mapping[str, Any]
Credentials = MutableMapping[str, Any]
Compiled = Callable[[Target, Credentials], bool]

#: check strings for rules, under Nova's names (nova/policies/base.py)
ADMIN = "rule:context_is_admin"
PROJECT_MANAGER = "rule:project_manager_or_admin"
PROJECT_MEMBER = "rule:project_member_or_admin"
PROJECT_READER = "rule:project_reader_or_admin"
SERVICE = "role:service"
ANYONE = "@"
NOBODY = "!"

#: rules that other rules refer to; the defaults of every `Enforcer`
BASE: Sequence[policy.RuleDefault] = (
    policy.RuleDefault("context_is_admin", "role:admin", "An administrator."),
    policy.RuleDefault(
        "admin_or_owner",
        "rule:context_is_admin or project_id:%(project_id)s",
        "For policy files written for older releases of Nova.",
    ),
    policy.RuleDefault("admin_api", ADMIN, "For policy files written for older releases of Nova."),
    policy.RuleDefault(
        "project_manager_api",
        "role:manager and project_id:%(project_id)s",
        "A manager of the project.",
    ),
    policy.RuleDefault(
        "project_member_api",
        "role:member and project_id:%(project_id)s",
        "A member of the project.",
    ),
    policy.RuleDefault(
        "project_reader_api",
        "role:reader and project_id:%(project_id)s",
        "A reader of the project.",
    ),
    policy.RuleDefault(
        "project_manager_or_admin",
        "rule:project_manager_api or rule:context_is_admin",
        "A manager of the project, or an administrator.",
    ),
    policy.RuleDefault(
        "project_member_or_admin",
        "rule:project_member_api or rule:context_is_admin",
        "A member of the project, or an administrator.",
    ),
    policy.RuleDefault(
        "project_reader_or_admin",
        "rule:project_reader_api or rule:context_is_admin",
        "A reader of the project, or an administrator.",
    ),
)


def register(conf: cfg.ConfigOpts) -> None:
    """Declare oslo.policy's options (`[oslo_policy] policy_file` …) on `conf`; idempotent."""
    opts._register(conf)
    conf.set_default("remote_ssl_verify_server_crt", True, group="oslo_policy")


def rule(
    name: str, check: str, description: str, scopes: Sequence[str] = ("project",)
) -> policy.RuleDefault:
    """Return a rule; `scopes`: the tokens it is open to. An API's routes say what it protects."""
    return policy.RuleDefault(name, check, description, scope_types=list(scopes))


def rules(rows: Mapping[str, Mapping[str, str]]) -> tuple[policy.RuleDefault, ...]:
    """Return the rules of a table: {who may: {rule: what}}."""
    return tuple(rule(name, who, text) for who, row in rows.items() for name, text in row.items())


class Enforcer:
    """Checks rules for one API. Threads may share it.

    `rules` are that API's defaults; the policy file that `[oslo_policy]` names overrides them
    and may change while the process runs (it is checked every `look_again_seconds`). `refusal` is
    the message of Forbidden.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        rules: Iterable[policy.RuleDefault],
        *,
        base: Iterable[policy.RuleDefault] = BASE,
        refusal: str = "Policy doesn't allow {} to be performed.",
        look_again_seconds: float = 1.0,
    ) -> None:
        register(conf)
        self._refusal, self._look_again_seconds = refusal, look_again_seconds
        self._oslo = policy.Enforcer(conf)
        # One policy file serves several APIs: rules of others are no mistake.
        self._oslo.skip_undefined_check = True
        self._oslo.register_defaults([*base, *rules])
        self._oslo.suppress_default_change_warnings = True
        self._lock = threading.Lock()
        self._looked_at = 0.0
        self._source: dict[str, checks.BaseCheck] = {}
        self._compiled: dict[str, Compiled] = {}
        self._refresh()

    def check(self, ctxt: RequestContext, rule: str, target: Target | None = None) -> None:
        """Raise Forbidden unless `ctxt` may do what `rule` names; arguments as in `allows`."""
        if not self.allows(ctxt, rule, target):
            LOG.debug("refused: %s for roles %s", rule, ctxt.roles)
            raise Forbidden(self._refusal.format(rule), rule=rule)

    def allows(self, ctxt: RequestContext, rule: str, target: Target | None = None) -> bool:
        """Return whether `ctxt` may do what `rule` names to `target`.

        `target` has the owner's `project_id` and `user_id`; None: those of `ctxt`. An undeclared
        rule allows nothing.
        """
        if time.monotonic() - self._looked_at > self._look_again_seconds:
            self._refresh()
        compiled = self._compiled.get(rule)
        if compiled is None:
            return False
        if target is None:
            target = {"project_id": ctxt.project_id, "user_id": ctxt.user_id}
        return compiled(target, _credentials(ctxt))

    def _refresh(self) -> None:
        """Load changed policy files."""
        if not self._lock.acquire(blocking=not self._compiled):
            return
        try:
            self._looked_at = time.monotonic()
            self._oslo.load_rules()
            if self._source == self._oslo.rules:
                return
            source = dict(self._oslo.rules)
            compiler = _Compiler(source, self._oslo)
            self._compiled = {name: self._scoped(name, compiler.named(name)) for name in source}
            self._source = source
        finally:
            self._lock.release()

    def _scoped(self, name: str, compiled: Compiled) -> Compiled:
        """Return the check, preceded by one of the token's scope."""
        default = self._oslo.registered_rules.get(name)
        scopes = frozenset(default.scope_types or ()) if default else frozenset()
        if not scopes:
            return compiled
        return lambda target, creds: _scope(creds) in scopes and compiled(target, creds)


def _credentials(ctxt: RequestContext) -> Credentials:
    return {
        "user_id": ctxt.user_id,
        "user_domain_id": ctxt.user_domain_id,
        "project_id": ctxt.project_id,
        "project_domain_id": ctxt.project_domain_id,
        "domain_id": ctxt.domain_id,
        "system_scope": ctxt.system_scope,
        "system": ctxt.system_scope,
        "roles": [role.lower() for role in ctxt.roles],
        "service_user_id": ctxt.service_user_id,
        "service_user_domain_id": ctxt.service_user_domain_id,
        "service_project_id": ctxt.service_project_id,
        "service_project_domain_id": ctxt.service_project_domain_id,
        "service_roles": ctxt.service_roles,
        "is_admin": ctxt.is_admin,
        "is_admin_project": ctxt.is_admin_project,
    }


def _scope(creds: Credentials) -> str:
    if creds["system_scope"]:
        return "system"
    return "domain" if creds["domain_id"] else "project"


class _Compiler:
    """Compiles rules' check trees into closures; what rules have in common, once."""

    def __init__(self, rules: Mapping[str, checks.BaseCheck], enforcer: policy.Enforcer) -> None:
        self._rules = rules
        self._enforcer = enforcer
        self._within: list[str] = []
        self._shared: dict[str, Compiled] = {}
        #: whether what is being compiled is the same within any rule
        self._may_share = True
        # Subclasses may answer differently: only these exact classes are compiled.
        self._known: Mapping[type, Callable[[Any], Compiled]] = {
            checks.TrueCheck: lambda check: lambda target, creds: True,
            checks.FalseCheck: lambda check: lambda target, creds: False,
            checks.NotCheck: self._not,
            checks.AndCheck: lambda check: self._together(all, check.rules),
            checks.OrCheck: lambda check: self._together(any, check.rules),
            checks.RuleCheck: self._rule,
            checks.RoleCheck: lambda check: _role(check.match),
            checks.GenericCheck: lambda check: _generic(check.kind, check.match),
        }

    def named(self, name: str) -> Compiled:
        """Return the closure for a rule."""
        self._within = [name]
        return self._compiled(self._rules[name])

    def _compiled(self, check: checks.BaseCheck) -> Compiled:
        """Return the closure for a check; other kinds (`http:` …) are called as they are."""
        known = self._known.get(type(check))
        if known is not None:
            return known(check)
        self._may_share = False
        enforcer, name = self._enforcer, self._within[0]
        return lambda target, creds: checks._check(check, target, creds, enforcer, name)

    def _not(self, check: checks.NotCheck) -> Compiled:
        inner = self._compiled(check.rule)
        return lambda target, creds: not inner(target, creds)

    def _together(
        self, quantifier: Callable[[Iterable[bool]], bool], parts: Iterable[checks.BaseCheck]
    ) -> Compiled:
        compiled = [self._compiled(part) for part in parts]
        return lambda target, creds: quantifier(part(target, creds) for part in compiled)

    def _rule(self, check: checks.RuleCheck) -> Compiled:
        name = check.match
        if name in self._shared:
            return self._shared[name]
        if name not in self._rules or name in self._within:
            self._may_share = False
            return lambda target, creds: False
        outside, self._may_share = self._may_share, True
        self._within.append(name)
        made = self._compiled(self._rules[name])
        self._within.pop()
        if self._may_share:
            self._shared[name] = made
        self._may_share &= outside
        return made


@functools.lru_cache(maxsize=1024)
def _role(match: str) -> Compiled:
    wanted = match.lower()
    if "%" not in match:
        return lambda target, creds: wanted in creds["roles"]

    def dynamic(target: Target, creds: Credentials) -> bool:
        try:
            return (match % target).lower() in creds["roles"]
        except KeyError:
            return False

    return dynamic


@functools.lru_cache(maxsize=1024)
def _generic(kind: str, match: str) -> Compiled:
    """`kind:match`, where kind names a credential (the usual case) or is a literal."""
    literal: str | None = None
    with contextlib.suppress(ValueError, SyntaxError):
        literal = str(ast.literal_eval(kind))
    path = kind.split(".")
    find = checks.GenericCheck._find_in_dict

    def compare(target: Target, creds: Credentials) -> bool:
        try:
            wanted = match % target
        except KeyError:
            return False
        if literal is not None:
            return wanted == literal
        return find(creds, path, wanted)

    return compare
