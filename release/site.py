"""What the site has besides docs/: CONTRIBUTING.md, and the API reference. A hook of MkDocs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from release import openapi, reference_pages

ROOT = Path(__file__).resolve().parents[1]
CONTRIBUTING = "contributing.md"
"""Its page, beside index.md."""
WITH_VERSIONS = "MICRONOVA_SITE_WITH_VERSIONS"
"""The environment of a build beside those of other releases."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Have the theme ask `../versions.json` for other versions, where there is such a file."""
    if os.environ.get(WITH_VERSIONS):
        # what the theme calls the form of that file
        config.extra["version"] = {"provider": "mike", "default": "latest"}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made."""
    for name, text in _made():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page whose links to CONTRIBUTING.md lead to its page of the site."""
    return markdown.replace("](../CONTRIBUTING.md", f"]({CONTRIBUTING}")


def _made() -> Iterator[tuple[str, str]]:
    """Yield (path in the site, text)."""
    # Its links lead to pages of docs/.
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    yield CONTRIBUTING, text.replace("](docs/", "](")
    for name in openapi.APIS:
        yield f"reference/{name}.json", openapi.text(name)
        yield f"reference/{name}.md", reference_pages.page(name)
