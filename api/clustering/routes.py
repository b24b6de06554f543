"""The whole clustering API as one table.

A row is a path under `/v1`; what guards its operations stands at the resource's methods.
"""

from __future__ import annotations

from api import rows
from api.clustering import policies
from api.clustering.call import ClusteringApi, WebhookApi
from api.clustering.resources import clusters, nodes, types
from api.clustering.resources.actions import Actions, Events
from api.clustering.resources.clusters import Clusters
from api.clustering.resources.nodes import Nodes
from api.clustering.resources.policies import Policies
from api.clustering.resources.profiles import Profiles
from api.clustering.resources.quotas import Quotas
from api.clustering.resources.receivers import Receivers, Webhooks
from api.clustering.resources.types import About
from api.clustering.resources.versions import Versions
from api.rows import Row
from api.versioned import Cloud
from web import protected
from web.protected import Protected, Served

VERSION = "/v1"
_LIST = {"GET": "index", "POST": "create"}
_ITEM = {"GET": "show", "PATCH": "update", "DELETE": "delete"}

ROUTES = (
    Row("/build-info", About, {"GET": "build_info"}),
    Row("/services", About, {"GET": "services"}),
    Row("/profile-types", types.PROFILE, {"GET": "index"}),
    Row("/profile-types/{name}", types.PROFILE, {"GET": "show"}),
    Row("/profile-types/{name}/ops", types.PROFILE, {"GET": "operations"}),
    Row("/policy-types", types.POLICY, {"GET": "index"}),
    Row("/policy-types/{name}", types.POLICY, {"GET": "show"}),
    Row("/profiles", Profiles, _LIST),
    Row("/profiles/validate", Profiles, {"POST": "validate"}),
    Row("/profiles/{profile_id}", Profiles, _ITEM),
    Row("/policies", Policies, _LIST),
    Row("/policies/validate", Policies, {"POST": "validate"}),
    Row("/policies/{policy_id}", Policies, _ITEM),
    Row("/clusters", Clusters, _LIST),
    Row("/clusters/{cluster_id}", Clusters, _ITEM),
    Row("/clusters/{cluster_id}/actions", Clusters, {"POST": ()}, clusters.ACTIONS),
    Row("/clusters/{cluster_id}/explanation", Clusters, {"GET": "explain"}),
    Row("/clusters/{cluster_id}/policies", Clusters, {"GET": "policies"}),
    Row("/clusters/{cluster_id}/policies/{policy}", Clusters, {"GET": "policy"}),
    Row("/clusters/{cluster_id}/attrs/{path}", Clusters, {"GET": "attributes"}),
    Row("/clusters/{cluster_id}/ops", Clusters, {"POST": "operate"}),
    Row("/nodes", Nodes, _LIST),
    Row("/nodes/adopt", Nodes, {"POST": "adopt"}),
    Row("/nodes/adopt-preview", Nodes, {"POST": "adopt"}),
    Row("/nodes/{node_id}", Nodes, _ITEM),
    Row("/nodes/{node_id}/actions", Nodes, {"POST": ()}, nodes.ACTIONS),
    Row("/nodes/{node_id}/ops", Nodes, {"POST": "operate"}),
    Row("/receivers", Receivers, _LIST),
    Row("/receivers/{receiver_id}", Receivers, _ITEM),
    Row("/receivers/{receiver_id}/notify", Receivers, {"POST": "notify"}),
    Row("/webhooks/{receiver_id}/trigger", Webhooks, {"POST": "trigger"}),
    Row("/quotas/{project_id}", Quotas, {"GET": "show", "PUT": "update", "DELETE": "delete"}),
    Row("/actions", Actions, {"GET": "index"}),
    Row("/actions/{action_id}", Actions, {"GET": "show", "PATCH": "update"}),
    Row("/events", Events, {"GET": "index"}),
    Row("/events/{event_id}", Events, {"GET": "show"}),
)
#: the version documents, which need no token
VERSIONS = (
    Row("/", Versions, {"GET": "index"}),
    Row(VERSION, Versions, {"GET": "show"}),
    Row(f"{VERSION}/", Versions, {"GET": "show"}),
)


def resources(cloud: Cloud) -> dict[str, object]:
    """Return the tables as Falcon's resources by path."""
    api = ClusteringApi(cloud)
    webhooks = [row for row in ROUTES if row.resource is Webhooks]
    others = [row for row in ROUTES if row.resource is not Webhooks]
    return (
        rows.resources(api, VERSIONS, "")
        | rows.resources(api, others, VERSION)
        | rows.resources(WebhookApi(cloud), webhooks, VERSION)
    )


def served() -> list[Served]:
    """Return all operations."""
    return [one for row in ROUTES for one in row.served()]


def operations() -> dict[str, list[Protected]]:
    """Return what each rule protects, as the sample policy lists it."""
    return protected.operations(policies.RULES, served(), several=())
