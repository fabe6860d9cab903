"""JSON, JSON lines and CSV: each number and text by its key, and its row."""

import csv
import io
import json
import re

from repro.record.contents.values import UnreadableError, Values, add_plain

NUMBER = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf|nan)", re.IGNORECASE)


def add_json(values: Values, data: bytes, key: str = "") -> None:
    """Adds the values of a JSON file."""
    try:
        add_plain(values, key, json.loads(data))
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"no JSON: {error}") from None


def add_json_lines(values: Values, data: bytes) -> None:
    """Adds the values of each line, which is JSON of its own."""
    for number, line in enumerate(filter(None, map(bytes.strip, data.splitlines())), 1):
        add_json(values, line, f"line {number}")


def add_csv(values: Values, data: bytes) -> None:
    """Adds each field by the number of its row and the name of its column; by the column's number without a header."""
    text = data.decode(errors="replace")
    dialect = csv.excel_tab if "\t" in text.partition("\n")[0] else csv.excel
    try:
        rows = [*csv.reader(io.StringIO(text, newline=""), dialect)]
    except csv.Error as error:
        raise UnreadableError(f"no CSV: {error}") from None
    header = [] if not rows or any(map(NUMBER.fullmatch, rows[0])) else rows[0]
    for number, row in enumerate(rows[bool(header) :], 1):
        for column, field in enumerate(row):
            name = header[column] if column < len(header) else str(column)
            if NUMBER.fullmatch(field.strip()):
                values.number(f"row {number}.{name}", field.strip())
            else:
                values.text(f"row {number}.{name}", field)
    for column, name in enumerate(header):
        values.text(f"column {column}", name)
