"""The facts of a training in the YAML front matter of a model card, as Hugging Face has it.

The card is a user's file. Its text is not made anew from the parsed YAML: only the lines of the key `repro` are written,
and all else stays byte for byte.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from repro import files
from repro.errors import ReproError, UsageError
from repro.report.levels import Levels
from repro.report.published import facts, one_training

KEY = "repro"
FRONT = re.compile(r"(\s*---(\r?\n))((?:[^\n]*\n)*?)(---(?:\r?\n|\Z))")
"""The front matter at the beginning of a file: its first line, the end of that line, the YAML, its last line."""
BLOCK = re.compile(rf"^{KEY}:[^\n]*\n(?:[ \t]+[^\n]*\n)*", re.MULTILINE)
"""The lines of the key, as they were written before."""


def update(path: Path, trainings: Sequence[Levels]) -> None:
    """Writes the facts of the one training into the front matter of the model card `path`, or gives it one.

    UsageError if the card does not exist, ReproError if its front matter cannot be read: then it is left as it is.
    """
    content = facts(one_training(trainings, "--model-card"))
    try:
        before = files.read(path)
        text = before.decode()
    except FileNotFoundError:
        raise UsageError(f"report: --model-card {path}: it does not exist; name the card of the model") from None
    except UnicodeDecodeError:
        raise _refused(path, "it is not text in UTF-8") from None
    after = with_facts(path, text, content).encode()
    if after != before:
        target, mode = path.resolve(), path.stat().st_mode
        files.write_atomically(target, after)
        target.chmod(mode)


def with_facts(path: Path, text: str, content: dict[str, Any]) -> str:
    """The text of a card with these facts under the key `repro`. ReproError if its front matter cannot be read."""
    front = FRONT.match(text)
    if front is None and text.lstrip("\ufeff \t\r\n").startswith("---"):
        raise _refused(path, "its front matter has no end, or does not begin with a line `---`")
    if front is None:
        newline = "\r\n" if "\r\n" in text else "\n"
        return _lines(content, newline, "---\n{}---\n") + text
    opening, newline, yaml_text, closing = front.groups()
    old = _parsed(path, yaml_text)
    block = _lines(content, newline, "{}")
    new_text, replaced = BLOCK.subn(lambda _: block, yaml_text)
    if not replaced:
        new_text += block
    twice = KEY in old and not replaced
    if twice or _parsed(path, new_text, f"with the key {KEY} it is not valid YAML") != old | {KEY: content}:
        raise _refused(path, f"its key {KEY} is not as this command writes it; remove the key")
    return opening + new_text + closing + text[front.end() :]


def _lines(content: dict[str, Any], newline: str, around: str) -> str:
    dumped = yaml.safe_dump({KEY: content}, sort_keys=False, allow_unicode=True, width=1_000_000)
    return around.format(dumped).replace("\n", newline)


def _parsed(path: Path, text: str, otherwise: str = "its front matter is not valid YAML") -> dict[str, Any]:
    try:
        content = yaml.safe_load(text)
    except Exception as error:  # of any type: that of a date, a number or a tag which is none
        raise _refused(path, f"{otherwise}: {' '.join(str(error).split())[:200]}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise _refused(path, "its front matter holds no keys")
    return content


def _refused(path: Path, why: str) -> ReproError:
    return ReproError(f"report: --model-card {path}: {why}; the file is left as it is")
