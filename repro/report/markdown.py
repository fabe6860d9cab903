"""Tables and escaped text in Markdown."""


def table(head: list[str], rows: list[list[str]]) -> list[str]:
    """A table, line by line."""
    return ["| " + " | ".join(map(escaped, row)) + " |" for row in [head, ["---"] * len(head), *rows]]


def escaped(text: str) -> str:
    """A backslash before whatever Markdown, or the HTML in it, could read as its own."""
    return "".join(f"\\{character}" if character in "\\`*_[]<>|~&$" else character for character in text)
