"""What the tutorials print beside the blocks that are played."""

from __future__ import annotations

from tests.functional.pages.played import Played
from tests.functional.pages.reading import Reading

HOMELAB, TEAM = "docs/tutorials/homelab.md", "docs/tutorials/team.md"

INSTALL = Reading(HOMELAB, ("pip install --constraint",))
PREPARE = Reading(HOMELAB, ("micronova proxmox prepare",))
UP = Reading(HOMELAB, ("micronova up --proxmox",))
LOGIN = Reading(HOMELAB, ("OS_CLIENT_CONFIG_FILE",))
ANNA = Reading(TEAM, ("auth_url:",), language="yaml")
SCRAPES = Reading(TEAM, ("scrape_configs:",), language="yaml")

PLAYED = (Played(HOMELAB), Played(TEAM))
TUTORIALS = (INSTALL, PREPARE, UP, LOGIN, ANNA, SCRAPES)
