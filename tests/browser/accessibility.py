"""axe-core: whether a page conforms to WCAG 2 AA."""

from __future__ import annotations

from typing import Any

from tests.browser import vendored
from tests.browser.chromium import Window

_SCRIPT = (vendored.FOLDER / vendored.FILES[0].path).read_text(encoding="utf-8")
_TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
_RUN = """
const [chosen, done] = arguments;
axe.run(document, {...chosen, iframes: false, resultTypes: ["violations"]}).then(
  (found) => done(found.violations.map((one) => ({
    rule: one.id, says: one.help,
    where: one.nodes.map((node) => `${node.target}: ${node.failureSummary}`).slice(0, 3)}))),
  (error) => done([{rule: "axe", says: String(error)}]));
"""


def violations(window: Window, *, contrast_only: bool = False) -> list[dict[str, Any]]:
    """Return what is wrong with the page; of the colours alone where the rest was looked at."""
    if not window.run("return Boolean(window.axe)"):
        window.run(_SCRIPT)
    values = ["color-contrast"] if contrast_only else list(_TAGS)
    chosen = {"runOnly": {"type": "rule" if contrast_only else "tag", "values": values}}
    found: list[dict[str, Any]] = window.driver.execute_async_script(_RUN, chosen)
    return found
