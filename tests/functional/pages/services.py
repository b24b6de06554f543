"""What pages print for services that run by themselves, and what they show of programs."""

from __future__ import annotations

from tests.functional.pages.reading import Reading

DASHBOARD = Reading(
    "docs/dashboard.md",
    ("gunicorn micronova.wsgi:dashboard",),
    values=(
        ("MICRONOVA_CONFIG=/etc/micronova", "exec env MICRONOVA_CONFIG={etc}"),
        ("127.0.0.1:8780", "127.0.0.1:{port}"),
    ),
    together=True,
)
DASHBOARD_SETTINGS = Reading(
    "docs/dashboard.md",
    ("auth_url = https://keystone.example.org/v3",),
    language="ini",
    values=(
        ("https://keystone.example.org/v3", "{keystone}"),
        ("/var/lib/micronova/dashboard", "{etc}/state"),
    ),
)

NEW_TYPES = Reading(
    "docs/identity.md",
    sentences=("openstack service create --name nova compute",),
    # as in a Keystone without this cloud
    before="""
        openstack user delete micronova
        for one in $(openstack service list -f value | grep -v identity | cut -d' ' -f1); \\
                do openstack service delete $one; done""",
    after="""
        for one in 'placement placement' 'glance image' 'neutron network'; \\
                do openstack service create --name $one; done
        for one in 'cinder block-storage' 'cinderv3 volumev3' 'senlin clustering'; \\
                do openstack service create --name $one; done""",
)
KEYSTONE = Reading(
    "docs/identity.md",
    ("openstack user create --domain Default --password-prompt",),
    values=(("https://cloud.example", "{cloud}"),),
    together=True,
    typed="of the services",
    after="openstack catalog show volumev3 -f value -c endpoints | grep {cloud}/volume/v3",
)
TOKEN_CHECK = Reading(
    "docs/identity.md",
    ("[keystone_authtoken]",),
    language="ini",
    values=(
        ("https://keystone.example/v3", "{keystone}"),
        ("password = …", "password = of the services"),
        ("192.0.2.11:11211,192.0.2.12:11211", "{memcached}"),
    ),
)
DATABASE = Reading(
    "docs/placement.md",
    sentences=("micronova db upgrade",),
    values=(("upgrade", "upgrade --config-file {conf}"),),
)
DEPLOYED = Reading(
    "docs/deploy.md",
    sentences=("micronova config show",),
    values=(("config show", "config show --config-file {conf}"),),
)
SCRAPES = Reading(
    "docs/monitor.md",
    ("scrape_configs:",),
    language="yaml",
    values=(("/etc/prometheus/alerts.yaml", "{alerts}"),),
)
PROCESSES = Reading("docs/operate.md", ("├─ Keystone",), language="text")
CASES = Reading("docs/development/new-server-action.md", ("Cases(",), language="python")
FORM = Reading(
    "docs/development/new-server-action.md", ("class ExtendVolumeFlow",), language="python"
)
FILTER = Reading("docs/development/new-filter.md", ("@host_filter",), language="python")

SERVICES = [
    *(DASHBOARD, DASHBOARD_SETTINGS, NEW_TYPES, KEYSTONE, TOKEN_CHECK),
    *(DATABASE, DEPLOYED, SCRAPES, PROCESSES, CASES, FORM, FILTER),
]
