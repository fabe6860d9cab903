"""`repro verify` of a command, in the process of the tests."""

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

from repro import __main__
from support.commands import script

SMALL = ("--out={run}", "--pause=0.02")
TOO_LATE = re.compile("before it could be stopped|nearly done when it was stopped")
"""What is said of a run that was nearly over, or over, when it was to be stopped."""


def verify(*words: str) -> tuple[int, dict[str, Any]]:
    """`repro verify WORDS` in this process: the exit code, and the answers by question.

    Where a script of SMALL was stopped too late, as on a busy machine, it is asked again with longer pauses.
    """
    before = set(Path("repro-records").glob("verify-*"))
    for pause in ("0.02", "0.2", "2") if any(SMALL[1] in word for word in words) else ("",):
        code = __main__.main(["verify", "--json", "answers.json", *(slower(word, pause) for word in words)])
        content = json.loads(Path("answers.json").read_text()) if Path("answers.json").exists() else {"answers": []}
        if not any(TOO_LATE.search(answer["why"] or "") for answer in content["answers"]):
            break
        for folder in set(Path("repro-records").glob("verify-*")) - before:
            shutil.rmtree(folder)
    return code, content | {"answers": {answer["question"]: answer for answer in content["answers"]}}


def slower(word: str, pause: str) -> str:
    return word.replace(SMALL[1], f"--pause={pause}")


def resumable(name: str) -> list[str]:
    command = script(name, *SMALL)
    return ["--resume", shlex.join([*command, "--resume"]), "--", *command]
