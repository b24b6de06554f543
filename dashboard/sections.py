"""All pages of the dashboard, and its navigation, as one table."""

from __future__ import annotations

from dashboard.page import Section
from dashboard.pages import (
    aggregates,
    all_regions,
    audit,
    decisions,
    explain,
    images,
    keypairs,
    measurements,
    migrations,
    nodes,
    overview,
    quotas,
    search,
    server_groups,
    servers,
    services,
    usage,
    volumes,
    waiting,
)
from dashboard.pages.access import credentials
from dashboard.pages.capacity import storages, trend
from dashboard.pages.flavor import listing as flavors
from dashboard.pages.flavor import one as flavor
from dashboard.pages.identity import members, projects, roles, teams, users
from dashboard.pages.ledger import activity
from dashboard.pages.networks import listing, security_groups
from dashboard.pages.scaling import groups
from dashboard.rights import May

SECTIONS: tuple[Section, ...] = (
    Section("Overview", (*overview.PAGES, *search.PAGES)),
    Section(
        "Servers",
        (*servers.PAGES, *all_regions.PAGES, *waiting.PAGES, *measurements.OF_SERVERS),
    ),
    Section("Scaling groups", groups.PAGES, within="Servers"),
    Section("Server groups", server_groups.PAGES, within="Servers"),
    Section("Key pairs", keypairs.PAGES, within="Servers"),
    Section("Flavors", (*flavors.PAGES, *flavor.PAGES), May.OPERATE, within="Servers"),
    Section("Volumes", volumes.PAGES),
    Section("Networks", listing.PAGES),
    Section("Security groups", security_groups.PAGES, within="Networks"),
    Section("Images", images.PAGES),
    Section("Quotas", quotas.PAGES),
    Section("Usage", usage.PAGES),
    Section("Access", credentials.PAGES),
    Section("Password", credentials.PASSWORD_PAGES, within="Access"),
    Section("Projects", (*projects.PAGES, *members.PAGES), May.OPERATE),
    Section("Users", users.PAGES, May.OPERATE, within="Projects"),
    Section("User groups", teams.PAGES, May.OPERATE, within="Projects"),
    Section("Roles", roles.PAGES, May.OPERATE, within="Projects"),
    Section("Nodes", (*nodes.PAGES, *measurements.OF_NODES), May.OPERATE),
    Section("Storages", storages.PAGES, May.OPERATE, within="Nodes"),
    Section("Trend", trend.PAGES, May.OPERATE, within="Nodes"),
    Section("Aggregates", aggregates.PAGES, May.OPERATE, within="Nodes"),
    Section("Migrations", migrations.PAGES, May.MANAGE),
    Section("Activity", activity.PAGES, May.OPERATE),
    Section("Audit", audit.PAGES, May.OPERATE),
    Section("Services", services.PAGES, May.OPERATE),
    Section("Explain", (*explain.PAGES, *decisions.PAGES)),
)
