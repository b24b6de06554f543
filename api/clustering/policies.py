"""The rules of the clustering API, one line each; names are Senlin's."""

from __future__ import annotations

from web.policy import PROJECT_MEMBER, PROJECT_READER, rules

_ROWS = {
    PROJECT_READER: {
        "build_info:build_info": "Show the release.",
        "profile_types:index": "List profile types.",
        "profile_types:get": "Show a profile type.",
        "policy_types:index": "List policy types.",
        "policy_types:get": "Show a policy type.",
        "profiles:index": "List profiles.",
        "profiles:get": "Show a profile.",
        "clusters:index": "List clusters.",
        "clusters:get": "Show a cluster, and why it is as it is.",
        "nodes:index": "List nodes.",
        "nodes:get": "Show a node.",
        "policies:index": "List policies.",
        "policies:get": "Show a policy.",
        "cluster_policies:index": "List the policies of a cluster.",
        "cluster_policies:get": "Show a policy of a cluster.",
        "receivers:index": "List receivers.",
        "receivers:get": "Show a receiver.",
        "actions:index": "List actions.",
        "actions:get": "Show an action.",
        "events:index": "List events.",
        "events:get": "Show an event.",
        "quotas:show": "Show how many groups a project may have.",
    },
    PROJECT_MEMBER: {
        "profiles:create": "Make a profile.",
        "profiles:update": "Rename a profile.",
        "profiles:delete": "Delete a profile.",
        "profiles:validate": "Check the spec of a profile.",
        "clusters:create": "Make a cluster.",
        "clusters:update": "Change a cluster, or its profile.",
        "clusters:delete": "Delete a cluster.",
        "clusters:action": "Scale, check, repair and steer a cluster.",
        "nodes:create": "Make a node.",
        "nodes:update": "Rename a node.",
        "nodes:delete": "Delete a node.",
        "nodes:action": "Check or repair a node.",
        "policies:create": "Make a policy.",
        "policies:update": "Rename a policy.",
        "policies:delete": "Delete a policy.",
        "policies:validate": "Check the spec of a policy.",
        "receivers:create": "Make a receiver.",
        "receivers:update": "Change a receiver.",
        "receivers:delete": "Delete a receiver.",
    },
    "rule:context_is_admin": {
        "clusters:global": "List the records of all projects.",
        "services:index": "List services.",
        "quotas:update": "Change how many groups a project may have.",
        "quotas:delete": "Reset how many groups a project may have to the default.",
    },
}

RULES = rules(_ROWS)
