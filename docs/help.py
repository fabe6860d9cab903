"""Paste the help of each command into docs/reference/commands.md.

python docs/help.py           stop where a page holds an old text
python docs/help.py --write   write the texts anew

A page has a line `<!-- help: COMMAND -->` and a block of code after it, which holds what `repro COMMAND --help` prints.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parent
BLOCK = re.compile(r"(<!-- help: ?([a-z]*) -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def help_text(command: str) -> str:
    """What `repro COMMAND --help` prints; CalledProcessError where it fails."""
    environment = os.environ | {"COLUMNS": "88", "NO_COLOR": "1"}
    words = [sys.executable, "-m", "repro", *command.split(), "--help"]
    done = subprocess.run(words, cwd=DOCS.parent, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def main(write: bool) -> int:
    """The exit code is 1 where a page is out of date, unless it is written anew."""
    old = []
    for path in sorted(DOCS.rglob("*.md")):
        page = path.read_text(encoding="utf-8")
        fresh = BLOCK.sub(lambda match: match[1] + help_text(match[2]) + match[4], page)
        if fresh == page:
            continue
        if write:
            path.write_text(fresh, encoding="utf-8")
        else:
            old.append(
                f"docs/{path.relative_to(DOCS)}: its --help is out of date; write it anew with: python docs/help.py --write"
            )
    print("\n".join(old) or "every page has the --help of its command")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
