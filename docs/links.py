"""Check the links and paths of the documentation.

.venv/docs/bin/python docs/links.py SITE [PAGE.md | NOTEBOOK.ipynb ...]

The site's generator checks links between pages. This also checks pictures and files, the pages outside docs/, that the
site loads nothing from another host, and that a path of the repository, as in `repro/trainers/loop/data.py`, exists.
"""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from markdown import markdown

LOADED = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src", "video": "src"}
SUFFIXES = (".cfg", ".in", ".ipynb", ".md", ".py", ".sbatch", ".sh", ".toml", ".txt", ".yaml", ".yml")
EXAMPLE = re.compile(r"[A-Z{}<>*$]")  # as in requirements/NAME.in
USERS = (
    "train.py",
    "train.ipynb",
    "out.ipynb",
    "script.py",
    "data.py",
    "test_reproducible.py",
    "requirements.txt",
)  # a reader's own files


class Page(HTMLParser):
    """The links of a page, the files that it loads, its anchors, and the words of its code."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = set()
        self.words: set[str] = set()
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif tag in LOADED and LOADED[tag] in values:
            self.loads.add(values[LOADED[tag]])
        if tag in ("pre", "code"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("pre", "code"):
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open:
            self.words |= {word.strip("\"'(),;:").removeprefix("./") for word in data.split()}


def read(path: Path) -> Page:
    """A page of HTML, of Markdown, or the texts of a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells)
    return Page(text if path.suffix == ".html" else markdown(text, extensions=["fenced_code", "tables", "toc"]))


def dead_links(path: Path) -> list[str]:
    """One line for each link or file of a page that leads nowhere."""
    page, lines = read(path), []
    for url in sorted(page.links | page.loads):
        parts = urlsplit(url)
        if parts.scheme or parts.netloc:
            if url in page.loads and parts.scheme != "data":
                lines.append(f"{path}: loads {url} from another host")
            continue
        target = path.parent / unquote(parts.path) if parts.path else path
        if not target.exists():
            lines.append(f"{path}: {url}: no such file")
        elif parts.fragment and unquote(parts.fragment) not in read(target).anchors:
            lines.append(f"{path}: {url}: no such anchor")
    return lines


def files() -> set[str]:
    """The files of the repository and their folders, and the ends of their paths, as in `common/switch.py`."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    names: set[str] = set()
    for path in map(Path, listing.stdout.splitlines()):
        if path.exists():
            names |= {"/".join(path.parts[i:]) for i in range(len(path.parts))} | set(map(str, path.parents))
    return names


def dead_paths(path: Path, names: set[str]) -> list[str]:
    """One line for each word of a page's code that looks like a path of the repository and is none."""
    lines = []
    for word in sorted(read(path).words):
        name = word.partition("::")[0].rstrip("/")
        top = name.partition("/")[0]
        is_path = name.endswith(SUFFIXES) or ("/" in word and top in names)
        is_users = Path(name).name in USERS or top == "workspace" or name.startswith((".", "~", "/"))
        if is_path and not is_users and name not in names and not EXAMPLE.search(name):
            lines.append(f"{path}: `{word}`: no such path in the repository")
    return lines


def main(site: Path, others: list[Path]) -> int:
    """Prints what is dead; the exit code is 1 if anything is."""
    pages = [page for page in sorted(site.rglob("*.html")) if page.name != "404.html"]  # its links begin at the root
    lines = [line for page in [*pages, *others] for line in dead_links(page)]
    names = files()
    lines += [line for page in [*sorted(Path("docs").rglob("*.md")), *others] for line in dead_paths(page, names)]
    print("\n".join(lines) or f"{len(pages) + len(others)} pages, no dead link, no dead path")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), [Path(word) for word in sys.argv[2:]]))
