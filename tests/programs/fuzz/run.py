"""Calls of the operations of one framework, with arguments that are drawn.

    python run.py pytorch|tensorflow|jax SETTING OUTPUT [--all] [--only PART]

SETTING is a name of settings.py; its environment variables have to be set already, see compare.py. OUTPUT gets a line of
JSON for each call. --all: all samples of each operation, in all types and layouts, not a few.
"""

import argparse
import importlib
import sys
import warnings
from pathlib import Path

from programs.fuzz import cases
from programs.fuzz.settings import SETTINGS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=("pytorch", "tensorflow", "jax"))
    parser.add_argument("setting", choices=SETTINGS)
    parser.add_argument("output", type=Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="", help="a part of the names of operations")
    given = parser.parse_args()
    setting = SETTINGS[given.setting]
    if not setting.kernels:
        sys.modules["llvmlite"] = None  # type: ignore[assignment]
    warnings.simplefilter("ignore")
    framework = importlib.import_module(f"programs.fuzz.{given.framework}")
    framework.start(setting)
    drawn = (each for each in framework.cases(given.all, given.only))
    cases.write((cases.outcome(each, setting.double) for each in drawn), given.output)


if __name__ == "__main__":
    main()
