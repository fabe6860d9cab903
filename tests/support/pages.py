"""Text of pages, for tests of pages."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """The cells of a page: (section, numerics, question, framework) -> text; and its elements, with attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: dict[tuple[int, str, str, str], str] = {}
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.section, self.numerics, self.question = -1, "", ""
        self.cell: tuple[int, str, str, str] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attributes) -> None:
        given = dict(attributes)
        self.elements.append((tag, given))
        if tag == "section" and given.get("class") == "results":
            self.section += 1
        self.numerics = given.get("data-numerics", self.numerics)
        self.question = given.get("data-question", self.question)
        if tag == "td" and self.question:
            self.cell = (self.section, self.numerics, self.question, given.get("data-framework", ""))

    def handle_endtag(self, tag: str) -> None:
        self.cell = None if tag == "td" else self.cell
        self.question = "" if tag == "table" else self.question

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.cell is not None:
            self.cells[self.cell] = self.cells.get(self.cell, "") + data
