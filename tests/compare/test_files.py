"""Files of two runs, compared by what they hold."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from repro.compare import files
from repro.compare.difference import of_files
from repro.record import record, written
from repro.record.record import Record
from support.commands import sha, straight, write

A, B = "array float32[2,3] aaaa", "array float32[2,3] bbbb"
W = "array float32[8,4] eeee"


def run(path: Path, contents: Mapping[str, dict[str, str] | None], final: bool = True, named: bool = False) -> Record:
    """A record with files in its own folder, or outputs that were named; of each the values, or None where it is not read."""
    digests = {name: sha((name, keys or str(path))) for name, keys in contents.items()}
    known = {name: {"sha256": digests[name], "keys": keys} for name, keys in contents.items() if keys is not None}
    own = {name: {"sha256": digest, "final": final} for name, digest in digests.items()}
    text = json.dumps({"files": known}).encode()
    more = {"outputs": digests} if named else {"written": own}
    write(path, straight(4), contents=sha256(text).hexdigest(), **more)
    (path / written.FILE).write_bytes(text)
    return record.read(path)


def compared(
    folder: Path,
    ours: Mapping[str, dict[str, str] | None],
    theirs: Mapping[str, dict[str, str] | None],
    lenient: bool = False,
) -> files.Files:
    return files.compare(run(folder / "a", ours), run(folder / "b", theirs), lenient)


@pytest.mark.parametrize(
    ("key", "ours", "theirs"),
    [
        ("model.0.weight", A, B),
        ("time_embedding.weight", A, B),
        ("generator.0.weight", A, B),
        ("model.0.weight", A, "array float32[3,3] aaaa"),
        ("best_loss", "number 0.5", "number 0.25"),
        ("row 3.val_acc", "number 0.5", "number 0.25"),
        ("3", "number 0.5", "number 0.25"),
        ("model.weights.h5", "bytes aaaa", "bytes bbbb"),
    ],
)
def test_what_is_trained_counts(key: str, ours: str, theirs: str, tmp_path: Path) -> None:
    result = compared(tmp_path, {"{run}/model.x": {"same": A, key: ours}}, {"{run}/model.x": {"same": A, key: theirs}})
    assert f"`{{run}}/model.x` differs first in `{key}` (" in result.differing["{run}/model.x"]
    assert "; 1 of 2 values differ)" in result.differing["{run}/model.x"]


@pytest.mark.parametrize(
    ("key", "ours", "theirs", "why"),
    [
        ("time", "number 1.5", "number 1.6", "a time"),
        ("train_runtime", "number 1.5", "number 1.6", "a time"),
        ("eval_samples_per_second", "number 1.5", "number 1.6", "a time"),
        ("metrics.loss_at", "number 1795841979.7", "number 1795841984.3", "a time"),
        ("x", "number 1795841979711", "number 1795841984311", "a time"),
        ("step_times", "array float64[20] aaaa", "array float64[20] bbbb", "a time"),
        ("config.layers.0.shared_object_id", "number 139976357441872", "number 140403028208208", "a time"),
        ("tput", "number 1.5", "number 1.6", "a number"),
        ("out", 'text "/a"', 'text "/b"', "a text"),
        ("rng", "array uint8[5056] aaaa", "array uint8[5056] bbbb", "the state of a generator"),
        ("numpy.1", "array uint32[624] aaaa", "array uint32[624] bbbb", "the state of a generator"),
        ("python_random_state.1.0", "number 12", "number 13", "the state of a generator"),
    ],
)
def test_times_paths_and_generators_do_not(key: str, ours: str, theirs: str, why: str, tmp_path: Path) -> None:
    result = compared(tmp_path, {"{run}/x.pt": {"same": A, key: ours}}, {"{run}/x.pt": {"same": A, key: theirs}})
    assert not result.differing and result.but_for["{run}/x.pt"].startswith(why)


def test_a_file_of_times_alone_is_not_compared(tmp_path: Path) -> None:
    result = compared(tmp_path, {"{run}/t.json": {"time": "number 1.5"}}, {"{run}/t.json": {"time": "number 1.6"}})
    assert list(result.aside) == ["{run}/t.json"] and not result.but_for


def test_a_format_that_is_not_read(tmp_path: Path) -> None:
    """The bytes decide of a file that is called as models are."""
    names = ["{run}/model.bin", "{run}/w/0.0", "{run}/model.data-00000-of-00001", "{run}/log.txt", "{run}/plot.png"]
    result = compared(tmp_path, dict.fromkeys(names), dict.fromkeys(names))
    assert list(result.differing) == ["{run}/model.bin", "{run}/model.data-00000-of-00001", "{run}/w/0.0"]
    assert result.aside == {"{run}/log.txt": "a log", "{run}/plot.png": "a format that is not read"}


def test_names_with_a_time_are_one_file(tmp_path: Path) -> None:
    ours = {"{run}/2026-11-28_04-59-47/w.npz": {"w": A}, "{run}/events.out.tfevents.1.a.2.0": None}
    theirs = {"{run}/2026-11-28_05-00-02/w.npz": {"w": B}, "{run}/events.out.tfevents.3.a.4.0": None}
    result = compared(tmp_path, ours, theirs)
    assert list(result.differing) == ["{run}/2026-11-28_04-59-47/w.npz"]
    assert result.aside == {"{run}/events.out.tfevents.1.a.2.0": "an event file, which holds times"}


def test_a_resumed_run_differs_in_arrays_with_the_shape_of_a_weight_alone(tmp_path: Path) -> None:
    """An average that was not restored counts; a log, a counter and another vector may be other ones."""
    ours = {"{run}/m.pt": {"w": W, "ema": "array float32[8,4] 1111", "log": "array float32[9] 2", "loss": "number 1"}}
    theirs = {"{run}/m.pt": {"w": W, "ema": "array float32[8,4] 3333", "log": "array float32[9] 4", "loss": "number 2"}}
    result = compared(tmp_path, ours, theirs, lenient=True)
    assert result.differing["{run}/m.pt"].endswith("differs first in `ema` (float32[8,4]; 1 of 4 values differ)")
    without = {"{run}/m.pt": {**(ours["{run}/m.pt"]), "ema": "array float32[8,4] 3333"}}
    result = compared(tmp_path / "without", without, theirs, lenient=True)
    assert not result.differing and list(result.aside) == ["{run}/m.pt"]


def test_a_resumed_run_may_leave_a_checkpoint_of_another_step(tmp_path: Path) -> None:
    ours, theirs = {"{run}/c.pt": {"w": W, "v": A}}, {"{run}/c.pt": {"w": W, "v": B}}
    a, b = run(tmp_path / "a", ours), run(tmp_path / "b", theirs, final=False)
    assert files.compare(a, b, lenient=True).aside == {"{run}/c.pt": files.NOT_FINAL}
    assert list(files.compare(a, b).differing) == ["{run}/c.pt"]


@pytest.mark.parametrize(
    ("ours", "theirs", "said", "untrained"),
    [
        ({"w": A}, {"w": B}, "`m.npz` differs first in `w` (float32[2,3]; 1 of 1 value differ)", False),
        ({"w": A, "time": "number 1"}, {"w": A, "time": "number 2"}, "which is a time, a speed or an id", True),
        ({"w": A, "x": "number 1"}, {"w": A, "x": "number 2"}, "`m.npz` differs first in `x` (1 and 2; ", False),
    ],
)
def test_an_output_that_is_named(
    ours: dict[str, str], theirs: dict[str, str], said: str, untrained: bool, tmp_path: Path
) -> None:
    a, b = run(tmp_path / "a", {"m.npz": ours}, named=True), run(tmp_path / "b", {"m.npz": theirs}, named=True)
    difference = of_files(a, b)
    assert difference and difference.names == ["m.npz"] and said in (difference.inside or "")
    assert difference.untrained == untrained


def test_an_output_with_other_bytes_and_the_same_content(tmp_path: Path) -> None:
    folders = []
    for name, dtype in (("a", "<f4"), ("b", "<f4")):
        (tmp_path / name).mkdir()
        path = tmp_path / name / "w.npz"
        (np.savez if name == "a" else np.savez_compressed)(path, w=np.ones(3, dtype))
        digests = {"w.npz": sha256(path.read_bytes()).hexdigest()}
        folder = write(tmp_path / name / "record", straight(4), outputs=digests)
        seal = written.write(folder, {"w.npz": path}, digests)
        content = json.loads((folder / "record.json").read_text()) | {"contents": seal}
        (folder / "record.json").write_text(json.dumps(content))
        folders.append(record.read(folder))
    difference = of_files(folders[0], folders[1])
    assert difference and difference.inside == "`w.npz` holds the same content, other bytes" and difference.untrained


def test_values_that_were_changed_afterwards_are_not_believed(tmp_path: Path) -> None:
    made = run(tmp_path / "a", {"{run}/m.pt": {"w": A}})
    assert made.keys_of("{run}/m.pt") == {"w": A}
    changed = (tmp_path / "a" / written.FILE).read_text().replace("aaaa", "bbbb")
    (tmp_path / "a" / written.FILE).write_text(changed)
    written.read_contents.cache_clear()
    assert made.keys_of("{run}/m.pt") is None
