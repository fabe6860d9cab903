"""Files as a stranger may write them: a valid one, changed in its bytes, its values, types, names or depth.

What a stranger can compute anew, as a checksum, is computed anew, so that a change gets past it.
"""

import copy
import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from safetensors.numpy import load as arrays_of
from safetensors.numpy import save as to_bytes

from repro.record import lines, record
from repro.structs import checksum
from repro.trainers.loop import checkpoint

Files = dict[str, bytes]
"""By path below the folder."""

DEEP = {"@25@": 25, "@900@": 900, "@99999@": 99_999}  # what stands for so many levels in JSON
HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1, -5, 2**31, 2**53 + 1, 2**63, 2**64, 10**90, 10**4000, 1.5, -0.0, 1e308, 1e-320),
    *(math.nan, math.inf, -math.inf, [], {}, [[]], {"": None}, [None], {"a": 1}, *DEEP),
    *("", " ", "x", "9" * 5000, "x" * 100_000, "0", "-1", "1e999", "null", "\u0660", "²", "é", "\U0001f600", "\ud800"),
    *(
        "\x1b]0;owned\x07",
        "\x1b[2J",
        "\x9b2J",
        "a\nsame: all equal",
        "a\r\b",
        "\x00",
        "\x7f",
        "\u202e",
        "\u00a0",
        "\u200d",
    ),
    *(
        "../../../etc/passwd",
        "/dev/zero",
        "{run}",
        "%s%n",
        "[red]x[/red]",
        "<script>",
        "|`x`|",
        "${oc.env:HOME}",
        "$(touch x)",
    ),
    *("0" * 64, "g" * 64, "sha256:" + "0" * 64, "2026-01-01T00:00:00+00:00", "9999-99-99T99:99:99+00:00", "deadbeef"),
]


HEADS = [
    *(
        b"float64 3",
        b"float32 -1",
        b"float32 3,99999999999",
        b"object 3",
        b"V8 1",
        b"float32 " + b"9" * 5000,
        b"bool 12",
    ),
    *(b"(3,)f4 1", b"float32 12,0", b"U3 1", b"M8[ns] 1", b"{'a': 'f4'} 3", b"float32 \xff", b"\xd9\xa3f4 3", b""),
]
"""First lines of a kept array."""
FILLS = (b"\xff", b"\x7f", b"\0", b"\1")  # NaN, the largest, zero, the smallest


def of_bytes(random: Random, content: bytes) -> bytes:
    """Some bytes are others, more, fewer, or at another place."""
    result = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5, 40))):
        at, length = random.randrange(len(result) + 1), random.choice((1, 2, 8, 100, 5000))
        part = bytes(result[at : at + length])
        change = random.randrange(6)
        if change == 0 and at < len(result):
            result[at] ^= 1 << random.randrange(8)
        elif change == 1:
            result[at : at + length] = b""
        elif change == 2:
            result[at:at] = random.choice(
                (part, b"\x1b[2J", b"\n", b"\0", b"\xff", b"\xed\xa0\x80", b"[" * 2000, random.randbytes(9))
            )
        elif change == 3:
            del result[at:]
        elif change == 4:
            result += part
        elif at < len(result):
            result[at] = random.randrange(256)
    return random.choice((bytes(result), bytes(result), bytes(result), b"", random.randbytes(random.randrange(300))))


def of_value(random: Random, content: Any) -> Any:
    """Some places in a tree of JSON hold something else."""
    results = [copy.deepcopy(content)]
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        _change(random, results)
    return results[0]


def _change(random: Random, root: list[Any]) -> None:
    """One place: chosen on the way down, from the root's only item on."""
    holder: Any = root
    key: Any = 0
    while isinstance(holder[key], (dict, list)) and holder[key] and random.random() < 0.85:
        holder = holder[key]
        key = random.choice([*holder]) if isinstance(holder, dict) else random.randrange(len(holder))
    change = random.randrange(7)
    if change == 0 and holder is not root:
        del holder[key]
    elif change == 1 and isinstance(holder, dict):
        holder[str(random.choice(HOSTILE))[:200_000]] = holder.pop(key)
    elif change == 2 and isinstance(holder, list) and holder is not root:
        holder.extend(copy.deepcopy(holder[key : key + 1]) * random.choice((1, 2, 50)))
    elif change == 3 and isinstance(holder, list) and holder is not root:
        random.shuffle(holder)
    elif change == 4 and isinstance(holder, dict):
        holder[key] = copy.deepcopy(holder[random.choice([*holder])])
    elif change == 5 and isinstance(holder[key], str):
        holder[key] += str(random.choice(HOSTILE))[:200_000]
    else:
        holder[key] = copy.deepcopy(random.choice(HOSTILE))


def written(content: Any) -> bytes:
    """JSON, with the levels that a writer would not get to."""
    text = json.dumps(content)
    for mark, levels in DEEP.items():
        text = text.replace(f'"{mark}"', "[" * levels + "]" * levels)
    return text.encode()


def of_json(random: Random, content: bytes, seal: Callable[[Any], Any] = lambda content: content) -> bytes:
    """A JSON file with another value; `seal` computes anew what follows from the rest."""
    changed = of_value(random, json.loads(content))
    if random.random() < 0.9:
        changed = seal(changed)
    return written(changed)


def of_lines(random: Random, content: bytes) -> bytes:
    """A file of JSON lines: some have another value, or are at another place."""
    lines = [json.loads(line) for line in content.splitlines()]
    changed = of_value(random, lines)
    return b"".join(written(line) + b"\n" for line in (changed if isinstance(changed, list) else [changed]))


def of_yaml(random: Random, content: bytes) -> bytes:
    """A YAML file, of which JSON is a part, with another value, with a tag, or with an alias."""
    import yaml

    text = written(of_value(random, yaml.safe_load(content)))
    tag = random.choice(
        (b"", b"", b"!!timestamp ", b"!!int ", b"!!python/object:os.system ", b"&a ", b"!!binary ", b"!!set ")
    )
    at = text.find(random.choice((b'"', b"{", b"[")))
    return text[:at] + tag + text[at:] if at >= 0 else text + b"\n" + tag


def sealed(content: Any) -> Any:
    """With the checksum of a results file."""
    return content | {"seal": checksum(content)} if isinstance(content, dict) else content


def of_checkpoint(random: Random, content: bytes) -> bytes:
    """A checkpoint with another header, another record or other arrays; the last two with their fingerprint."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    if random.random() < 0.3:
        changed = written(of_value(random, header))
        return len(changed).to_bytes(8, "little") + changed + content[8 + length :]
    fields, arrays = json.loads(header["__metadata__"][checkpoint.KEY]), arrays_of(content)
    if random.random() < 0.4:
        arrays = _of_arrays(random, arrays)
    else:
        fields = of_value(random, fields)
    try:
        known = checkpoint.CheckpointRecord(**fields)
        known.fingerprint = checkpoint._fingerprint(arrays, known)
        fields = asdict(known)
    except (TypeError, ValueError):
        pass
    return to_bytes(arrays, metadata={checkpoint.KEY: written(fields).decode()})


def _of_arrays(random: Random, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    name = random.choice([*arrays])
    array = arrays.pop(name)
    change = random.randrange(5)
    if change == 0:
        arrays[random.choice((name + "x", "\x1b[2J", "", "momentum/x", "9" * 5000, checkpoint.KEY))] = array
    elif change == 1:
        arrays[name] = array.astype(random.choice((np.float64, np.float16, np.int8, np.bool_, np.uint64)))
    elif change == 2:
        arrays[name] = array.reshape(-1)[: random.choice((0, 1, 3))]
    elif change == 3:
        arrays[name] = np.full_like(array, random.choice((np.nan, np.inf, 3e38, 1e-45)))
    return arrays


def of_kept(random: Random, files: Files, path: str) -> Files:
    """A kept array under the name that its content has, and the steps that name it."""
    head, _, values = files[path].partition(b"\n")
    head = random.choice((*HEADS, of_bytes(random, head), head))
    values = random.choice(
        (values, b"", of_bytes(random, values), *(byte * size for byte in FILLS for size in (12, 24)))
    )
    changed: Files = {}
    for folder in random.choice((["a"], ["a", "b"])):  # of both, so that they can be compared
        old = next(name for name in files if name.startswith(f"{folder}/kept/") and not name.endswith("/array"))
        content = head + b"\n" + (values if folder == "a" else values[:-1] + b"?")
        code = hashlib.sha256(content).hexdigest()
        steps = {name: text for name, text in files.items() if name.startswith(f"{folder}/steps/")}
        changed |= {name: text.replace(Path(old).name.encode(), code.encode()) for name, text in steps.items()}
        changed[f"{folder}/kept/{code}"] = content
    return changed


def refitted(folder: Path, files: Files) -> None:
    """Gives a changed record.json, or steps, what follows from both: the number of steps and the fingerprint."""
    try:
        content = json.loads(files.get("a/record.json") or (folder / "a" / "record.json").read_bytes())
        trained = [process for process in lines.processes(folder / "a") if process.steps]
        for one, process in zip(content["processes"], trained, strict=True):
            one.update(name=process.name, steps=process.last)
        content["fingerprint"] = record.fingerprint(trained, content["outputs"])
        (folder / "a" / "record.json").write_bytes(written(content))
    except Exception:  # then it stays as it is
        return
