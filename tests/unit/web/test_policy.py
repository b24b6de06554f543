"""Policy: the compiled checks answer as oslo.policy's own do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from oslo_policy import policy as oslo

from common.context import RequestContext
from common.errors import Forbidden
from web import policy

RULES = [
    policy.rule("read", policy.PROJECT_READER, "reading"),
    policy.rule("write", policy.PROJECT_MEMBER, "writing"),
    policy.rule("admin", policy.ADMIN, "administering"),
    policy.rule("not", "not role:member", "not for members"),
    policy.rule("owner", "user_id:%(user_id)s", "own"),
    policy.rule("literal", "'x':%(user_id)s", "a literal"),
    policy.rule("service", "service_user_id:s and service_project_id:%(project_id)s", "own"),
    policy.rule("dynamic", "role:%(user_id)s", "a role by name"),
    policy.rule("missing", "rule:nowhere", "a rule that is not there"),
    policy.rule("anyone", policy.ANYONE, "all", scopes=("project", "system")),
    policy.rule("nobody", policy.NOBODY, "none"),
]
WHO: list[dict[str, Any]] = [
    {"roles": ["reader"], "project_id": "p", "user_id": "u"},
    {"roles": ["Member", "reader"], "project_id": "p", "user_id": "x"},
    {"roles": ["admin"], "project_id": "q", "user_id": "member"},
    {"roles": ["admin"], "system_scope": "all", "user_id": "u"},
    {"roles": [], "project_id": "p", "user_id": "u"},
    {"roles": [], "user_id": "u", "service_user_id": "s", "service_project_id": "p"},
]
TARGETS = [{"project_id": "p", "user_id": "u"}, {"project_id": "q", "user_id": "member"}, {}]


def a_conf(directory: Path, text: str = "") -> cfg.ConfigOpts:
    file = directory / "policy.yaml"
    file.write_text(text)
    conf = cfg.ConfigOpts()
    policy.register(conf)
    conf([], default_config_files=[])
    conf.set_override("policy_file", str(file), group="oslo_policy")
    return conf


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("target", TARGETS)
def test_answers_as_oslo_policy_does(
    tmp_path: Path, who: dict[str, Any], target: dict[str, str]
) -> None:
    ours = policy.Enforcer(a_conf(tmp_path), RULES)
    theirs = oslo.Enforcer(a_conf(tmp_path))
    theirs.register_defaults([*policy.BASE, *RULES])
    ctxt = RequestContext(overwrite=False, **who)
    for rule in RULES:
        expected = theirs.enforce(rule.name, target, ctxt)
        assert ours.allows(ctxt, rule.name, target) == expected, rule.name


def test_refusal_has_novas_words(tmp_path: Path) -> None:
    enforcer = policy.Enforcer(a_conf(tmp_path), RULES)
    with pytest.raises(Forbidden, match="Policy doesn't allow admin to be"):
        enforcer.check(RequestContext(overwrite=False, **WHO[0]), "admin")


def test_an_undeclared_rule_allows_nothing(tmp_path: Path) -> None:
    enforcer = policy.Enforcer(a_conf(tmp_path), RULES)
    assert not enforcer.allows(RequestContext(overwrite=False, **WHO[2]), "not declared")


def test_the_file_overrides_and_may_change(tmp_path: Path) -> None:
    conf = a_conf(tmp_path, '"read": "!"\n"of another api": "@"\n')
    enforcer = policy.Enforcer(conf, RULES, look_again_seconds=-1.0)
    ctxt = RequestContext(overwrite=False, **WHO[0])
    assert not enforcer.allows(ctxt, "read")
    file = tmp_path / "policy.yaml"
    file.write_text('"read": "role:reader"\n')
    os.utime(file, (2_000_000_000, 2_000_000_000))
    assert enforcer.allows(ctxt, "read")
