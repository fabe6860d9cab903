"""Write docs/reference/causes.md from the rules.

python docs/causes.py           stop where the page is out of date
python docs/causes.py --write   write its tables anew
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from repro.compare.reasons import GROUPS, whole
from repro.compare.reasons.case import ARRAYS, GUESS, HASHES, RUNS, Rule
from repro.port.causes import GROUPS as PORTS
from repro.verify import batch_causes, dependence
from repro.verify.causes import HYPOTHESES
from repro.verify.command_questions import COMMAND_QUESTIONS

PAGE = Path(__file__).parent / "reference" / "causes.md"
TABLES = re.compile(r"(<!-- causes -->\n)(.*?)(<!-- end -->)", re.DOTALL)
EVIDENCE = {
    HASHES: "the hashes prove it",
    RUNS: "runs tested it",
    ARRAYS: "each side's arrays follow from its own formula",
    GUESS: "a guess",
}
MORE = {whole: (whole.other_numerics,)}
"""Rules that are asked before all others."""


def row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', ', ') for cell in cells)} |"


def table(rules: tuple[Rule, ...]) -> list[str]:
    rows = (row(rule.name, rule.meaning.rstrip("."), EVIDENCE[rule.evidence], rule.remedy) for rule in rules)
    return [row("cause", "what is seen", "evidence", "remedy"), "|---|---|---|---|", *rows]


def tables() -> str:
    """A table for each file of rules, one for the causes that runs test, and one for the changes of `verify`."""
    lines: list[str] = []
    for group in (*GROUPS, whole):
        title = (group.__doc__ or "").strip().splitlines()[0].rstrip(".")
        rules = MORE.get(group, ()) + group.RULES
        lines += [f"## {title}", "", *table(rules), ""]
    lines += ["## Two baseline runs differ, and further runs test why", ""]
    lines += [row("cause", "what is shown", "values", "evidence", "remedy"), "|---|---|---|---|---|"]
    for one in HYPOTHESES:
        values = ", ".join(f"`{change.label}`" for change in one.values)
        lines.append(row(one.name, one.cause, values, EVIDENCE[one.evidence], one.remedy))
    lines += ["", "## A resumed run differs, and one more run tests why", ""]
    lines += [row("cause", "what is shown", "evidence", "remedy"), "|---|---|---|---|"]
    lines += [row(dependence.NAME, dependence.MEANING, EVIDENCE[dependence.EVIDENCE], dependence.REMEDY)]
    lines += ["", "## An evaluation has other scores in other batches, and further runs test why", ""]
    lines += [row("cause", "what is shown", "taken away by", "evidence", "remedy"), "|---|---|---|---|---|"]
    for each in batch_causes.CAUSES:
        lines.append(row(each.name, each.cause, each.how, EVIDENCE[each.evidence], each.remedy))
    lines += ["", "## A change makes a difference", "", row("question", "what the answer says"), "|---|---|"]
    lines += [row(f"`{one.name}`", one.meaning) for one in COMMAND_QUESTIONS if one.meaning and not one.control]
    lines += ["", "## Two sides of a port do not agree", ""]
    lines += table(tuple(rule for group in PORTS for rule in group.RULES))
    return "\n".join([*lines, ""])


def main(write: bool) -> int:
    """The exit code is 1 where the page is out of date, unless it is written anew."""
    page = PAGE.read_text(encoding="utf-8")
    fresh = TABLES.sub(lambda match: match[1] + tables() + match[3], page)
    if write:
        PAGE.write_text(fresh, encoding="utf-8")
    elif fresh != page:
        print(
            "docs/reference/causes.md: its tables are out of date; write them anew with: python docs/causes.py --write"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
