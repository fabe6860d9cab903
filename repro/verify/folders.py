"""Results without this machine's folders."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, structs


def without_folders(value: Any, names: Mapping[Path, str]) -> Any:
    """A text, or a structure of texts, in which each folder has its name, the first first; the root has none."""
    if isinstance(value, str):
        for folder, name in names.items():
            if folder != Path(os.sep):
                value = re.sub(rf"{re.escape(str(folder))}(?![\w.-])", name, value)
        return value
    if isinstance(value, list):
        return [without_folders(inner, names) for inner in value]
    if isinstance(value, dict):
        return {without_folders(key, names): without_folders(inner, names) for key, inner in value.items()}
    if isinstance(value, Struct):
        return type(value)(**without_folders(structs.asdict(value), names))
    return value
