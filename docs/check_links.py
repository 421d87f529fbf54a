"""Check the documentation: every local link resolves, every page is reached from the index."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

__all__: list[str] = []

DOCS: Final = Path(__file__).resolve().parent
ROOT: Final = DOCS.parent
CODE: Final = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK: Final = re.compile(r"\]\(<?([^)\s>]+)>?[^)]*\)")
ELSEWHERE: Final = re.compile(r"[a-z][a-z0-9+.-]*:")


def links(page: Path) -> list[tuple[Path, str]]:
    """Return the local targets of a page, each a path and an anchor, which may be empty."""
    text = CODE.sub("", page.read_text("utf-8"))
    local = [target for target in LINK.findall(text) if not ELSEWHERE.match(target)]
    parts = [target.partition("#") for target in local]
    return [((page.parent / path).resolve() if path else page, name) for path, _, name in parts]


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings make."""
    text = re.sub(r"^(```|~~~).*?^\1", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ +(.+?) *$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Return one complaint for each link of a page that leads nowhere."""
    here = page.relative_to(ROOT)
    complaints = []
    for path, anchor in links(page):
        if not path.exists():
            complaints.append(f"{here}: no such file: {path}")
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            complaints.append(f"{here}: no heading #{anchor} in {path.relative_to(ROOT)}")
    return complaints


def reachable(start: Path) -> set[Path]:
    """Return the pages that a reader can come to from one page."""
    seen: set[Path] = set()
    ahead = [start]
    while ahead:
        page = ahead.pop()
        if page not in seen and page.suffix == ".md" and page.is_file():
            seen.add(page)
            ahead.extend(path for path, _ in links(page))
    return seen


def main() -> int:
    """Print every complaint; return the exit status."""
    # A changelog fragment is text for the changelog, not a page.
    pages = {page for page in DOCS.rglob("*.md") if not page.name.startswith("+")}
    lost = sorted(pages - reachable(DOCS / "index.md"))
    complaints = [f"{page.relative_to(ROOT)}: not reachable from docs/index.md" for page in lost]
    for page in sorted(pages | {ROOT / "README.md"}):
        complaints += broken_links(page)
    print(*complaints, f"{len(pages)} pages, {len(complaints)} complaints", sep="\n")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
