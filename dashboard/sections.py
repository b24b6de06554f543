"""All pages of the dashboard, and its navigation, as one table."""

from __future__ import annotations

from dashboard.page import Section
from dashboard.pages import explain, images, networks, overview, quotas, servers, volumes

SECTIONS: tuple[Section, ...] = (
    Section("Overview", overview.PAGES),
    Section("Servers", servers.PAGES),
    Section("Volumes", volumes.PAGES),
    Section("Networks", networks.PAGES),
    Section("Images", images.PAGES),
    Section("Quotas", quotas.PAGES),
    Section("Explain", explain.PAGES),
)
