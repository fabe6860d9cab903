"""Records altered by their maker, who makes all hashes fit again before he signs."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from repro.record import lines, record

Line = dict[str, Any]


def rewrite(folder: Path, change: Callable[[list[Line]], list[Line]]) -> None:
    """Changes the lines of the one process of a record, and seals them again; record.json follows."""
    (file,) = (folder / lines.STEPS).glob("*.jsonl")
    texts = change([json.loads(text) for text in file.read_text().splitlines()])
    seal, sealed = "", []
    for text in texts:
        text.pop("seal", None)
        plain = json.dumps(text)
        seal = hashlib.sha256((seal + plain).encode()).hexdigest()
        sealed.append(f'{plain[:-1]}, "seal": "{seal}"}}\n')
    file.write_text("".join(sealed))
    (process,) = (one for one in lines.processes(folder) if one.steps)

    def follow(content: Line) -> None:
        content["processes"][0] |= {"seal": process.seal, "steps": process.last}
        content["fingerprint"] = record.fingerprint([process], content["outputs"])

    edit(folder, follow)


def edit(folder: Path, change: Callable[[Line], None]) -> None:
    """Changes record.json."""
    path = folder / record.FILE
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def replace_checkpoint(folder: Path, step: int, data: bytes) -> None:
    """Replaces the copy of a checkpoint, and its hash in record.json."""

    def follow(content: Line) -> None:
        (change,) = (one for one in content["checkpoints"] if one["step"] == step)
        for file in change["files"].values():
            (folder / "checkpoints" / file["copy"]).write_bytes(data)
            file["sha256"] = hashlib.sha256(data).hexdigest()

    edit(folder, follow)
