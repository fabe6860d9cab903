"""Follows the links of the built site, and of the repository's own pages: `make docs` stops where one is dead.

.venv/docs/bin/python docs/links.py SITE [PAGE.md | NOTEBOOK.ipynb ...]

What the site's generator does not look at is looked at here: pictures and files, links of pages outside docs/, and that
nothing is loaded from another host, so that the site works from a folder without a network.
"""

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown import markdown

LOADED = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src", "video": "src"}


class Page(HTMLParser):
    """What a page links to, what it loads, and the anchors that it has."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif tag in LOADED and LOADED[tag] in found:
            self.loads.add(found[LOADED[tag]])


def read(path: Path) -> Page:
    """A page of HTML, of Markdown, or the texts of a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    return Page(text if path.suffix == ".html" else markdown(text, extensions=["fenced_code", "tables", "toc"]))


def dead(path: Path) -> list[str]:
    """What is wrong with a page's links, one line each."""
    page, wrong = read(path), []
    for url in sorted(page.links | page.loads):
        parts = urlsplit(url)
        if parts.scheme or parts.netloc:
            if url in page.loads and parts.scheme != "data":
                wrong.append(f"{path}: loads {url} from another host")
            continue
        target = path.parent / unquote(parts.path) if parts.path else path
        if not target.exists():
            wrong.append(f"{path}: {url}: no such file")
        elif parts.fragment and unquote(parts.fragment) not in read(target).anchors:
            wrong.append(f"{path}: {url}: no such anchor")
    return wrong


if __name__ == "__main__":
    site, *others = map(Path, sys.argv[1:])
    pages = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]  # its links begin at the root
    found = [line for page in [*pages, *others] for line in dead(page)]
    print("\n".join(found) or f"{len(pages) + len(others)} pages, no dead link")
    sys.exit(bool(found))
