"""The values of files by their keys."""

import io
import json
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from repro.record import contents
from repro.record.contents.values import MOST_KEYS
from support.observed import interpreter
from support.runs import HANG, PROGRAMS

STOP = b"."


def of(path: Path, data: bytes) -> dict[str, str] | None:
    path.write_bytes(data)
    return contents.read(path)


def differing(a: Path, b: Path) -> list[str]:
    ours, theirs = contents.read(a), contents.read(b)
    assert ours is not None and theirs is not None
    return [key for key in [*ours, *(theirs.keys() - ours.keys())] if ours.get(key) != theirs.get(key)]


def test_numpy(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", array)
    np.save(tmp_path / "b.npy", np.asfortranarray(array))
    np.savez(tmp_path / "a.npz", w=array, b=np.ones(2))
    np.savez_compressed(tmp_path / "b.npz", w=array, b=np.zeros(2))
    assert (contents.read(tmp_path / "a.npy") or {})["array"].startswith("array float32[2,3] ")
    assert differing(tmp_path / "a.npy", tmp_path / "b.npy") == ["array"]
    assert differing(tmp_path / "a.npz", tmp_path / "b.npz") == ["b"]


def test_safetensors(tmp_path: Path) -> None:
    tensors = {"w": np.ones((2, 3), np.float32), "b": np.zeros(2, np.float32)}
    save_file(tensors, tmp_path / "a.safetensors", {"format": "pt"})
    save_file({**tensors, "b": np.ones(2, np.float32)}, tmp_path / "b.safetensors", {"format": "np"})
    assert differing(tmp_path / "a.safetensors", tmp_path / "b.safetensors") == ["b", "__metadata__.format"]


def test_json_and_its_lines(tmp_path: Path) -> None:
    assert of(tmp_path / "a.json", b'{"a": {"b": [1, "x", null]}}') == {
        "a.b.0": "number 1",
        "a.b.1": 'text "x"',
        "a.b.2": "number None",
    }
    assert of(tmp_path / "a.jsonl", b'{"a": 1}\n\n{"a": 2.5}\n') == {"line 1.a": "number 1", "line 2.a": "number 2.5"}
    assert of(tmp_path / "_METADATA", b'{"version": 1}') == {"version": "number 1"}
    assert of(tmp_path / "cut.json", b'{"a": ') is None
    assert of(tmp_path / "deep.json", b"[" * 100_000) is None


def test_csv(tmp_path: Path) -> None:
    known = {"column 0": 'text "step"', "column 1": 'text "note"'}
    row = {"row 1.step": "number 1", "row 1.note": 'text "a,b"'}
    assert of(tmp_path / "a.csv", b'step,note\n1,"a,b"\n') == row | known
    assert of(tmp_path / "b.tsv", b"1\t-2.5e-3\n") == {"row 1.0": "number 1", "row 1.1": "number -2.5e-3"}


def test_the_times_of_an_archive_are_left_out(tmp_path: Path) -> None:
    for name, second in (("a.zip", 2), ("b.zip", 4)):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(zipfile.ZipInfo("w.bin", (2026, 1, 1, 0, 0, second)), b"1234")
            archive.writestr(zipfile.ZipInfo("config.json", (2026, 1, 1, 0, 0, second)), b'{"units": 3}')
    assert (tmp_path / "a.zip").read_bytes() != (tmp_path / "b.zip").read_bytes()
    assert differing(tmp_path / "a.zip", tmp_path / "b.zip") == []
    assert list(contents.read(tmp_path / "a.zip") or {}) == ["config.units", "w.bin"]


# --- pickles, whose bytes are written out here ----------------------------------------------------------------------

RUNS_A_PROGRAM = b"\x80\x02cos\nsystem\nU\x0etouch executedq\x00\x85R."
IMPORTS = b"\x80\x04\x8c\x08builtins\x8c\x04exec\x93\x8c\x18open('executed', 'w')  #\x85R."
BUILDS = b"\x80\x02c__main__\nThing\n)\x81}U\x01aK\x05sb."
HOLDS_ITSELF = b"\x80\x02]q\x00h\x00a."


@pytest.mark.parametrize("data", [RUNS_A_PROGRAM, IMPORTS])
def test_a_pickle_that_runs_a_program_is_only_read(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    known = of(tmp_path / "a.pkl", data)
    assert known is not None and len(known) == 1 and "executed" in "".join(known.values())
    assert not (tmp_path / "executed").exists()


def test_objects_and_older_protocols(tmp_path: Path) -> None:
    assert of(tmp_path / "a.pkl", BUILDS) == {"a": "number 5"}
    memo = b"\x80\x02}q\x00(U\x04lossq\x01G?\xe0\x00\x00\x00\x00\x00\x00U\x05layerq\x02]q\x03(K\x01K\x02eu."
    assert of(tmp_path / "b.pkl", memo) == {"loss": "number 0.5", "layer.0": "number 1", "layer.1": "number 2"}


@pytest.mark.parametrize(
    "data",
    [
        HOLDS_ITSELF,
        b"\x80\x02]q\x00" + b"]q\x01(" + b"h\x00" * 5 + b"e",
        b"\x80\x02K\x01",
        b"\x80\x02R.",
        b"\x80\x02}U\x01a.",
        b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f.",
        b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.",
    ],
)
def test_a_pickle_that_is_damaged_or_without_end(data: bytes, tmp_path: Path) -> None:
    known = of(tmp_path / "a.pkl", data)
    assert known is None or known.keys() <= {"0", "a"}


def test_a_pickle_that_doubles(tmp_path: Path) -> None:
    """Lists of one list twice, forty levels deep: 2 ** 40 values in a hundred bytes."""
    levels = b"".join(b"(h" + bytes([n]) + b"h" + bytes([n]) + b"lq" + bytes([n + 1]) for n in range(40))
    assert of(tmp_path / "a.pkl", b"\x80\x02]q\x00" + levels + STOP) is None


def test_an_archive_that_is_larger_than_it_looks(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", b" " * (64 << 20))
    known = of(tmp_path / "a.zip", buffer.getvalue())
    assert known is None or list(known) == ["a.json"]


def test_more_values_than_are_read(tmp_path: Path) -> None:
    assert of(tmp_path / "a.json", json.dumps([0] * (MOST_KEYS + 1)).encode()) is None


@pytest.mark.parametrize("name", ["a.pt", "a.npz", "a.npy", "a.safetensors", "a.h5", "a.msgpack", "a.json", "a.csv"])
@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"\x89HDF\r\n\x1a\n", b"\xff" * 64])
def test_damaged_files_raise_nothing(name: str, data: bytes, tmp_path: Path) -> None:
    assert (of(tmp_path / name, data) or {}).keys() <= {"0", "column 0"}


# --- what frameworks write ------------------------------------------------------------------------------------------


def saved(framework: str, folder: Path) -> dict[str, list[str]]:
    """Pairs of files that a framework wrote, and the keys in which they differ."""
    program = str(PROGRAMS / "saved_pairs.py")
    subprocess.run([interpreter(framework), program, framework, str(folder)], check=True, timeout=HANG)
    first = sorted(path.relative_to(folder / "a") for path in (folder / "a").rglob("*") if path.is_file())
    return {str(name): differing(folder / "a" / name, folder / "b" / name) for name in first}


def test_pytorch(tmp_path: Path) -> None:
    assert saved("pytorch", tmp_path) == {
        "epoch.pt": ["epoch"],
        "equal.pt": [],
        "module.pt": ["_modules.2._parameters.bias"],
        "momentum.pt": ["optimizer.state.0.exp_avg"],
        "numpy.pt": ["scores"],
        "strided.pt": ["transposed"],
        "view.pt": ["row"],
        "weights.pt": ["2.bias"],
    }


def test_msgpack_of_flax(tmp_path: Path) -> None:
    assert saved("jax", tmp_path) == {"m.msgpack": ["params.w"]}
