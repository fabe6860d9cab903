"""Writes golden/operations.txt anew, by the environments of all frameworks.

python tests/programs/golden_cases/write.py
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests"))

from programs.golden_cases import table  # noqa: E402


def rows(framework: str) -> dict[table.Row, str]:
    python, program = (
        ROOT / ".venv" / framework / "bin" / "python",
        ROOT / "tests" / "programs" / "golden_operations.py",
    )
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}", "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [str(python), "-s", "-P", str(program), framework]
    return table.parsed(
        subprocess.run(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    )


if __name__ == "__main__":
    table.PATH.write_text(table.written({framework: rows(framework) for framework in table.FRAMEWORKS}))
