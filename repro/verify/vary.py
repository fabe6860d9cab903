"""An option of the command as a question.

`workers=--num-workers={}:0,4`: the name of the question, the option, the values that are tried, and what should come out.
"""

import shlex
from collections.abc import Collection, Sequence

from repro.errors import UsageError
from repro.text import slug
from repro.verify import known_options
from repro.verify.questions import ALWAYS, DIFFERS, NEVER, SAME, Change, Compared, Question

EXAMPLE = "'workers=--num-workers={}:0,4'"
PLACE = "{}"
BY_NAME: dict[str, Compared] = {"batch": "batch", "ranks": "ranks"}
"""Names of questions that are compared in a way of their own, and promise nothing: other batches, another number of ranks."""
NOTHING = "the option changes nothing: the command does not use it, or nothing that is seen depends on it"


def with_option(words: Sequence[str], option: str, value: str) -> list[str]:
    """A command's words with an option at a value: in the place of the last such option, or else at the end.

    `--seed={}` takes the place of `--seed 1`, too, and `--seed {}` that of `--seed=1`.
    """
    template = shlex.split(option)
    new, beginning = [word.replace(PLACE, value) for word in template], template[0].split(PLACE)[0]
    name = beginning.rstrip("=")
    for index in reversed(range(len(words))):
        after = index + _length(words[index:], name, beginning, len(template)) if name else index
        if after > index:
            return [*words[:index], *new, *words[after:]]
    return [*words, *new]


def _length(words: Sequence[str], name: str, beginning: str, length: int) -> int:
    """The number of words of the option that these begin with; 0 if they begin with another one."""
    first, *others = words
    if first.startswith(f"{name}=") or (length == 1 and first != name and first.startswith(beginning)):
        return 1
    if first != name:
        return 0
    return max(length, 1 if others[:1] and others[0].startswith("--") else 2)


def questions(texts: Sequence[str], others: Collection[str], words: Sequence[str] = ()) -> list[Question]:
    """The questions of each --vary of a command. UsageError for one that says none, or whose name is one of the others'."""
    result: list[Question] = []
    for text in (known_options.expanded(text, words) for text in texts):
        question = _question(text)
        if question.name in {*others, *(one.name for one in result)}:
            raise UsageError(
                f"verify: --vary {text!r}: there is a question {question.name} already; give it another name"
            )
        result.append(question)
    return result


def _question(text: str) -> Question:
    name, equals, rest = text.partition("=")
    option, place, end = rest.partition(PLACE)
    more, colon, values = end.partition(":")
    if not (name and equals and place and colon):
        raise UsageError(
            f"verify: --vary {text!r}: must be NAME=OPTION{{}}:VALUE,VALUE, as in {EXAMPLE}, or one of {', '.join(known_options.WORDS)}"
        )
    if slug(name) != name.lower().replace("_", "-"):
        raise UsageError(f"verify: --vary {text!r}: the name {name!r} must be of letters, digits, - and _")
    values, _, last = values.rpartition(":") if values.endswith((f":{SAME}", f":{DIFFERS}")) else (values, "", SAME)
    option = f"{option}{PLACE}{more}"
    try:
        words = shlex.split(option)
    except ValueError as error:
        raise UsageError(f"verify: --vary {text!r}: the option {option!r}: {error}") from None
    tried = values.split(",")
    if not all(tried) or len({*tried}) < len(tried):
        raise UsageError(f"verify: --vary {text!r}: its values {values!r} must be different, with commas between them")
    return Question(
        name,
        f"Option {option}: {', '.join(tried)}",
        tuple(
            Change(f"{name} {n}: {_typed(words, value)}", option=(option, value)) for n, value in enumerate(tried, 1)
        ),
        promise=NEVER if name in BY_NAME else ALWAYS,
        control=last == DIFFERS,
        compared=BY_NAME.get(name, "varied"),
        meaning="another value, as it should" if last == DIFFERS else "only this option was changed",
        sameness=NOTHING if last == DIFFERS else "",
    )


def _typed(words: Sequence[str], value: str) -> str:
    return shlex.join(word.replace(PLACE, value) for word in words)
