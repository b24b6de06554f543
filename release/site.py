"""What the site has besides docs/: CONTRIBUTING.md. A hook of MkDocs, see mkdocs.yml."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
CONTRIBUTING = "contributing.md"
"""Its page, beside index.md."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add CONTRIBUTING.md, whose links lead to pages of docs/."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").replace("](docs/", "](")
    files.append(File.generated(config, CONTRIBUTING, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page whose links to CONTRIBUTING.md lead to its page of the site."""
    return markdown.replace("](../CONTRIBUTING.md", f"]({CONTRIBUTING}")
