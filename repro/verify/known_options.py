"""Options that `--vary` knows by a word: `workers`, `ranks`, `compile`.

An option is taken that the command line has, or else one that its script names, or that a library in the script adds.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from repro.errors import UsageError

LARGEST = 10_000_000
"""Characters of a script that are read."""


@dataclass(frozen=True)
class Word:
    """A word, and the names of its options in the libraries and examples that have them."""

    names: tuple[str, ...]
    values: tuple[str, ...]
    """The values that are tried: the first ones that the command line does not have."""
    count: int = 1
    """The number of these."""
    added: tuple[tuple[str, str], ...] = ()
    """A name in a script, and the option that a library adds for it."""
    flag: bool = False
    """True if the option has no value."""


WORDS = {
    "workers": Word(
        ("--num-workers", "--num_workers", "--dataloader_num_workers", "--workers", "--n-workers", "--n_workers", "-j"),
        ("0", "2", "4"),
        count=2,
        added=(("HfArgumentParser", "--dataloader_num_workers"),),
    ),
    "ranks": Word(
        ("--nproc-per-node", "--nproc_per_node", "--num_processes", "--trainer.devices", "--devices", "-np"),
        ("1", "2"),
        added=(("LightningCLI", "--trainer.devices"),),
    ),
    "compile": Word(
        ("--compile", "--torch_compile", "--torch-compile", "--torchcompile", "--jit-compile", "--jit_compile"),
        ("",),
        added=(("HfArgumentParser", "--torch_compile"),),
        flag=True,
    ),
}


def expanded(text: str, words: Sequence[str]) -> str:
    """The text of a --vary that is one of the words, as `workers` or `workers:0,4`, with the option; any other as it is.

    UsageError where no option is known.
    """
    name, colon, values = text.partition(":")
    if name not in WORDS:
        return text
    word = WORDS[name]
    typed = next((option for option in word.names if _value(words, option) is not None), None)
    if typed and word.flag:
        raise UsageError(f"verify: --vary {text}: {typed} is in the command already; leave it out: verify adds it")
    option = typed or _of_script(word, words)
    if option is None:
        raise UsageError(
            f"verify: --vary {text}: no option for it is known, as neither the command line nor its script has one of {', '.join(word.names)}; name it, as in --vary '{_question(name, '--x', word, values or '1,2')}'"
        )
    own = _value(words, option)
    others = [value for value in word.values if value != own][: word.count]
    return _question(name, option, word, values if colon else ",".join(others))


def _question(name: str, option: str, word: Word, values: str) -> str:
    if word.flag:
        return f"{name}={{}}:{option}"
    return f"{name}={option}{'=' if option.startswith('--') else ' '}{{}}:{values}"


def _value(words: Sequence[str], option: str) -> str | None:
    """The last value of an option on a command line, empty for one without; None where the option is not there."""
    for index in reversed(range(len(words))):
        if words[index] == option:
            return words[index + 1] if index + 1 < len(words) else ""
        if words[index].startswith(f"{option}="):
            return words[index].removeprefix(f"{option}=")
    return None


def _of_script(word: Word, words: Sequence[str]) -> str | None:
    """The option that the command's script names, or that a library in it adds."""
    text = _script(words)
    named = (option for option in word.names if re.search(rf"""["']{re.escape(option)}["']""", text))
    return next(named, None) or next((option for mark, option in word.added if mark in text), None)


def _script(words: Sequence[str]) -> str:
    """The text of the first word that is a script in Python; empty without one."""
    for path in (Path(word) for word in words if word.endswith(".py")):
        try:
            with path.open(errors="replace") as file:
                return file.read(LARGEST)
        except OSError:
            continue
    return ""
