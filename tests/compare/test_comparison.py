"""repro.trainers.verify.recorded, on folders of runs of the trainers: same but for what a test planted."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from repro.compare.distance import Point, relative, ulps
from repro.compare.facts import causes
from repro.errors import ReproError, UsageError
from repro.report.comparison import told
from repro.trainers.loop import environment, randomness
from repro.trainers.verify import narrow, recorded
from repro.verify.answers import as_result
from support import commands
from support.trainer_runs import EVERY, STEPS, Folder, State, flip


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def difference(a: Path, b: Path) -> dict[str, Any] | None:
    """In the form of results.json."""
    result = as_result(recorded.compare(a, b), [])
    return msgspec.to_builtins(result) if result else None


def at(results: dict[str, Any] | None) -> tuple[int | None, str, int | None, str]:
    """The step, the channel, the last equal step, and the first array."""
    assert results is not None
    return results["step"], results["channel"], results["last_equal_step"], results["tensor"]


class TestFirstDifference:
    def test_none(self, folder: Folder) -> None:
        assert difference(folder.run("a"), folder.run("b")) is None

    @pytest.mark.parametrize(
        ("tensor", "channel"),
        [("conv1.kernel", "weights"), ("dense2.bias", "weights"), ("momentum/conv1.bias", "optimizer")],
    )
    def test_one_bit(self, folder: Folder, tensor: str, channel: str) -> None:
        result = difference(folder.run("a"), folder.run("b", {4: flip(tensor)}))
        assert at(result) == (4, channel, 2, tensor) and result is not None
        assert (result["elements"], result["ulps"]) == (1, 1)
        assert result["size"] == randomness.initial_state(0, "lenet", "sgd")[tensor].size
        assert [point["step"] for point in result["growth"]] == [2, 4, 6, 8]
        assert result["growth"][0]["relative"] == 0
        assert (result["growth"][1]["relative"] > 0) == (channel == "weights")

    def test_of_the_initial_weights(self, folder: Folder) -> None:
        result = difference(folder.run("a"), folder.run("b", {0: flip("conv2.bias")}))
        assert at(result) == (0, "initial weights", None, "conv2.bias") and result and result["ulps"] == 1

    def test_slots_come_before_weights(self, folder: Folder) -> None:
        def both(state: State) -> None:
            flip("momentum/conv1.bias")(state)
            flip("dense2.kernel")(state)

        assert at(difference(folder.run("a"), folder.run("b", {4: both})))[1] == "optimizer"

    def test_between_two_traces(self, folder: Folder) -> None:
        a, b = folder.run("a"), folder.run("b", {3: flip("conv2.kernel")}, losses={4: 9.0})
        assert at(difference(a, b)) == (4, "weights", 2, "conv2.kernel")
        assert recorded.compare(a, b).losses == "other bits from step 4: 0.25 and 9"

    def test_only_a_loss(self, folder: Folder) -> None:
        difference = recorded.compare(
            folder.run("a"), folder.run("b", losses={5: float(np.nextafter(np.float32(0.2), np.float32(1)))})
        )
        assert difference.found is None and difference.losses == "other bits from step 5: 0.200000003 and 0.200000018"
        assert "but losses that were reported differ, and no weight:" in told(difference)

    def test_without_traces(self, folder: Folder) -> None:
        a, b = folder.run("a", traced=False), folder.run("b", {8: flip("dense2.bias", 0)}, traced=False)
        assert at(difference(a, b)) == (8, "weights", None, recorded.ALL)

    def test_one_of_them_traced(self, folder: Folder) -> None:
        assert difference(folder.run("a", traced=False), folder.run("b")) is None
        result = difference(folder.run("c", traced=False), folder.run("d", {8: flip("conv1.bias")}))
        assert at(result)[3] == recorded.ALL

    def test_checkpoints_stand_in_for_traces(self, folder: Folder, tmp_path: Path) -> None:
        a = folder.run("a", traced=False, kept=True)
        b = Folder(tmp_path / "other").run("b", {8: flip("dense1.bias")}, traced=False, kept=True)
        result = difference(a, b)
        assert at(result) == (8, "weights", None, "dense1.bias") and result and result["ulps"] == 1

    def test_growth_begins_at_the_initial_weights(self, folder: Folder) -> None:
        result = difference(folder.run("a"), folder.run("b", {1: flip("conv1.bias")}))
        assert result and [point["step"] for point in result["growth"]] == [0, 2, 4, 6, 8]

    def test_as_far_as_both_go(self, folder: Folder) -> None:
        a, b = folder.run("a"), folder.run("b", {8: flip("conv1.bias")}, steps=6)
        assert difference(a, b) is None

    def test_no_step_in_common(self, folder: Folder) -> None:
        a, b = folder.run("a", traced=False), folder.run("b", traced=False, steps=6)
        with pytest.raises(UsageError, match="no step was hashed in both records"):
            difference(a, b)

    def test_a_run_and_a_record(self, folder: Folder, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="one is a run of a trainer, the other the record of a command"):
            recorded.compare(folder.run("a"), commands.write(tmp_path / "record", commands.straight()))


class TestRead:
    def test_no_run(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is not the folder of a run"):
            recorded.read(tmp_path)

    @pytest.mark.parametrize("name", ["experiment.json", "metrics.jsonl"])
    @pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"step": {}}'])
    def test_damaged(self, folder: Folder, name: str, content: str) -> None:
        run = folder.run("a")
        (run / name).write_text(content)
        if name == "metrics.jsonl" and content == "":
            assert recorded.read(run).content.fingerprint is None  # killed in its first epoch
            return
        with pytest.raises(ReproError, match=f"{name} cannot be read"):
            recorded.read(run)

    def test_fingerprint_changed_in_metrics(self, folder: Folder) -> None:
        run = folder.run("a")
        text = (run / "metrics.jsonl").read_text()
        (run / "metrics.jsonl").write_text(re.sub(r"sha256:(\w{63})\w", r"sha256:0\1", text))
        with pytest.raises(ReproError, match=r"is not that in experiment\.json"):
            recorded.read(run)

    def test_fingerprints_changed_in_both(self, folder: Folder) -> None:
        run, other = folder.run("a"), folder.run("b", {8: flip("conv1.bias")})
        for name in ("metrics.jsonl", "experiment.json"):
            (run / name).write_bytes((other / name).read_bytes())
        with pytest.raises(ReproError, match="at step 8 is not that of the checkpoint"):
            recorded.read(run)

    def test_changed_state(self, folder: Folder) -> None:
        run = folder.run("a")
        state = run / "trace" / "epoch_0001_step_000004.safetensors"
        content = bytearray(state.read_bytes())
        content[-1] ^= 1
        state.write_bytes(content)
        with pytest.raises(ReproError, match="is damaged"):
            recorded.read(run)

    def test_line_of_a_trace(self, folder: Folder) -> None:
        run = folder.run("a")
        (run / "trace.jsonl").write_text("no line\n")
        with pytest.raises(ReproError, match=r"trace\.jsonl:1 is no line of a trace"):
            recorded.read(run)

    def test_last_line_cut_short_by_a_kill(self, folder: Folder) -> None:
        run = folder.run("a")
        text = (run / "trace.jsonl").read_text()
        (run / "trace.jsonl").write_text(text[:-20])
        assert max(recorded.read(run).trace.tensors) == STEPS - EVERY


class TestComparable:
    def test_another_configuration(self, folder: Folder) -> None:
        a, b = folder.run("a"), folder.run("b", params={"seed": 1, "learning_rate": 0.1})
        with pytest.raises(UsageError, match=r"params\.seed: 0 and 1; params\.learning_rate: 0\.01 and 0\.1"):
            recorded.compare(a, b)

    def test_fewer_samples(self, folder: Folder) -> None:
        a, b, whole = folder.run("a"), folder.run("b"), folder.run("whole")
        for run, samples in ((b, 6000), (whole, 60_000)):  # `a` is of a version that did not know the key
            record = json.loads((run / "experiment.json").read_text())
            record["config"]["data"]["train_samples"] = samples
            (run / "experiment.json").write_text(json.dumps(record))
        recorded.compare(a, whole)
        with pytest.raises(UsageError, match=r"data\.train_samples: 60000 and 6000"):
            recorded.compare(a, b)

    def test_momentum_matters_to_sgd_alone(self, folder: Folder) -> None:
        a = folder.run("a", params={"optimizer": "adam"})
        b = folder.run("b", params={"optimizer": "adam", "momentum": 0.9})
        recorded.compare(a, b)


class TestCauses:
    def test_likeliest_first(self) -> None:
        a = {"framework": {"threads": 2}, "cpu": {"model": "x"}, "versions": {"python": "3.11.2"}, "started": "now"}
        b = {"framework": {"threads": 1}, "cpu": {"model": "y"}, "versions": {"python": "3.11.7"}, "started": "then"}
        assert [cause.fact for cause in causes(a, b)] == ["framework.threads", "cpu.model", "versions.python"]

    def test_a_fact_that_one_side_lacks(self) -> None:
        (cause,) = causes({"environment": {"XLA_FLAGS": "x"}}, {"environment": {}})
        assert (cause.fact, cause.a, cause.b) == ("environment.XLA_FLAGS", "x", None)

    def test_none(self) -> None:
        assert causes({"framework": {"threads": 2}}, {"framework": {"threads": 2}}) == []

    def test_where_programs_are_kept_explains_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert causes({"environment": environment._compiled()}, {"environment": {}}) == []


class TestUlps:
    @pytest.mark.parametrize(
        ("x", "y", "apart"),
        [
            (1.0, 1.0, 0),
            (1.0, 1.0000001192092896, 1),
            (1.0, 0.9999999403953552, 1),
            (1e-45, -1e-45, 2),
            (0.0, -0.0, 0),
            (2.0, 1.0, 2**23),
        ],
    )
    def test_distance(self, x: float, y: float, apart: int) -> None:
        assert ulps(np.array([x], np.float32), np.array([y], np.float32)) == apart

    def test_largest(self) -> None:
        assert ulps(np.array([1, 1, 4], np.float32), np.array([1, 1, 2], np.float32)) == 2**23


def test_told(folder: Folder) -> None:
    a = folder.run("a")
    b = folder.run("b", {4: flip("conv2.bias")}, framework={"framework": "JAX", "version": "2", "device": "cpu"})
    text = told(recorded.compare(a, b))
    assert "differs: first seen at step 4, in the weights; equal until step 2" in text
    assert "  by      `conv2.bias`: 1 of 20 elements, up to 1 ulp" in text
    assert "  growth  step 2: 0.0e+00, step 4: " in text
    assert "  why     one configuration, so one order of batches and one schedule" in text
    assert "framework.version: 1 and 2 (kernels change between versions)" in text
    assert "same: all that both records hold is equal (8 steps)" in told(recorded.compare(a, a))


def test_where_it_begins_in_words() -> None:
    assert narrow._begin(3, "conv1", 2e-8) == "in step 3, with conv1: relative difference 2.0e-08"
    assert narrow._begin(3, "the update of conv1.bias") == "in step 3, with the update of conv1.bias"


@pytest.mark.parametrize(
    ("x", "y", "size"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([0.0, 0.0], [3.0, 4.0], 5.0),
        ([3.0, 4.0], [0.0, 0.0], 1.0),
        ([1e308], [-1e308], None),
        ([np.nan], [1.0], None),
        ([np.inf], [np.inf], None),
        ([1e-320], [1e150], None),
    ],
)
def test_a_relative_difference_is_a_number_or_none(x: list[float], y: list[float], size: float | None) -> None:
    assert relative(np.array(x), np.array(y)) == size
    assert str(Point(3, size, None)) == (
        "step 3: unknown (not all is finite)" if size is None else f"step 3: {size:.1e}"
    )
