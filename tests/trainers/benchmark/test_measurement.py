"""`./run.sh benchmark`, on real trainings.

What it measures and in which order, and its messages where it cannot.
"""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from repro.trainers.benchmark import cells, energy, results, speed
from repro.trainers.benchmark.results import Benchmark, DoneSample
from repro.trainers.loop import config, times
from support.measurements import benchmark
from support.runs import HANG, ROOT, Run, planted, some
from support.waiting import until

pytestmark = pytest.mark.spread

# A sample of a hundredth of the data: seconds, most of them to start.
SHORT = ("frameworks=pytorch", "devices=cpu", "batch_sizes=100", "train_samples=600", "tutorial=false", "target=null")


def left(workspace: Path) -> Benchmark:
    (path,) = workspace.glob("benchmark/*/benchmark.json")
    return results.read(path)


# --- what is measured -----------------------------------------------------------------------------------------------


def composed(*overrides: str) -> config.Config:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKSPACE_PATH", "/nowhere")
        return config.compose_config(Path("nowhere"), list(overrides))


def test_cells_by_default():
    chosen = cells.cells(composed(), ["cpu"])
    assert [cell.name for cell in chosen[:5]] == [
        "pytorch/deterministic/cpu/32/2/60000",
        "pytorch/fast/cpu/32/2/60000",
        "pytorch/portable/cpu/32/2/60000",
        "pytorch/tutorial/cpu/32/2/60000",
        "tensorflow/deterministic/cpu/32/2/60000",
    ]
    assert len(chosen) == 12
    assert len({cell.name for cell in chosen}) == 12


def test_axes_multiply_and_baselines_know_few_of_them():
    asked = (
        "benchmark.tuned=true",
        "benchmark.batch_sizes=[16,4096]",
        "benchmark.threads=[1,2]",
        "benchmark.train_samples=[60000,6000]",
    )
    chosen = cells.cells(composed(*asked, "benchmark.frameworks=[jax]"), ["cpu", "gpu"])
    baselines = [cell for cell in chosen if cell.numerics in cells.BASELINES]
    assert len(chosen) - len(baselines) == 2 * 2 * 2 * 2 * 3
    assert [(cell.numerics, cell.device, cell.batch_size, cell.threads, cell.train_samples) for cell in baselines] == [
        (name, "cpu", batch_size, 1, 60_000) for batch_size in (16, 4096) for name in ("tutorial", "tuned")
    ]
    for other in ("params.optimizer=adam", "params.model=convnet", "data.dataset=fashion_mnist"):
        chosen = cells.cells(composed(other, "benchmark.tuned=true"), ["cpu"])
        assert not cells.BASELINES.keys() & {cell.numerics for cell in chosen}


def test_rounds_go_forwards_and_backwards():
    chosen = cells.cells(composed(), ["cpu"])
    a, b, c, d = ([cell.name for cell in cells.in_round(chosen, number)] for number in range(4))
    assert a == c == b[::-1] == d[::-1] and a != b


@pytest.mark.parametrize("batch_size", [1, 16, 32, 64, 128, 1000, 4096, 60_000])
def test_a_sample_is_long_enough_and_no_longer(batch_size: int):
    """As a run would call the trainer: the calls seen before hold half an epoch, but without the last one, less."""
    steps = cells.steps_for("lenet", batch_size, 60_000, 30_000)
    calls, step, longest, whole = [], 0, 256, -(-60_000 // batch_size)
    while step < steps:
        place = step % whole
        stop = min(place + longest, whole, place + steps - step)
        calls.append({"steps": stop - place, "images": min(stop * batch_size, 60_000) - place * batch_size})
        step += stop - place
    steady = times.steady(calls)
    assert sum(call["images"] for call in steady) >= 30_000
    assert sum(call["images"] for call in steady[:-1]) < 30_000 and steady[-1] is calls[-1]


# --- energy ---------------------------------------------------------------------------------------------------------


def test_energy_between_two_moments(tmp_path: Path):
    (tmp_path / "intel-rapl:0").mkdir()
    (tmp_path / "intel-rapl:0:0").mkdir()  # a part of the package, which counts it already
    for zone in ("intel-rapl:0", "intel-rapl:0:0"):
        (tmp_path / zone / "energy_uj").write_text("5000000\n")
    monitor = energy.Monitor("cpu", tmp_path)
    assert (monitor.source, monitor.joules and monitor.joules()) == ("RAPL", 5.0)
    monitor.readings = [(10.0, 100.0), (11.0, 110.0), (12.0, 130.0)]
    assert monitor.between(10.5, 11.5) == 120.0 - 105.0
    assert monitor.between(8.0, 11.0) is None
    monitor.readings = [(10.0, 100.0), (11.0, 1.0)]  # it began anew
    assert monitor.between(10.0, 11.0) is None


def test_where_there_is_no_counter(tmp_path: Path):
    monitor = energy.Monitor("cpu", tmp_path)
    with monitor():
        pass
    assert monitor.source == f"not measured: this machine shows no RAPL counters in {tmp_path}"
    assert monitor.between(0.0, 1.0) is None
    (tmp_path / "intel-rapl:0").mkdir()
    assert "RAPL gives no energy" in energy.Monitor("cpu", tmp_path).source
    if not Path("/proc/driver/nvidia").exists():
        assert "NVML gives no energy" in energy.Monitor("gpu", tmp_path).source


def test_a_process_is_watched(tmp_path: Path):
    (tmp_path / "intel-rapl:0").mkdir()
    counter = tmp_path / "intel-rapl:0" / "energy_uj"
    counter.write_text("0")
    monitor = energy.Monitor("cpu", tmp_path)
    with monitor():
        until(lambda: len(monitor.readings) >= 2)
    assert [joules for _, joules in monitor.readings] == [0.0] * len(monitor.readings)


# --- real ones ------------------------------------------------------------------------------------------------------


def test_one_round(run: Run, workspace: Path):
    done = run("benchmark", *SHORT, "numerics=deterministic", "rounds=1")
    assert done.returncode == 0, done.stderr
    content = left(workspace)
    (sample,), (row,) = content.samples, content.rows
    assert sample.cell == row.cell == "pytorch/deterministic/cpu/100/2/600"
    assert isinstance(sample, DoneSample) and row.fingerprints == [sample.fingerprint]
    assert row.seconds_per_epoch and row.seconds_per_epoch.n == 1
    assert (row.cold_start or 0) > 0 and (row.roofline or 0) > 0
    (folder,) = workspace.glob("benchmark/*")
    assert row.fingerprints[0][7:15] in (folder / "benchmark.md").read_text()


@pytest.mark.slow
def test_one_framework(run: Run, workspace: Path):
    done = run("benchmark", *SHORT, "numerics=deterministic,fast", "rounds=2")
    assert done.returncode == 0, done.stderr
    content = left(workspace)
    names = [f"pytorch/{numerics}/cpu/100/2/600" for numerics in ("deterministic", "fast")]
    order = [names[0], names[1], names[1], names[0]]
    assert [(sample.cell, sample.round) for sample in content.samples] == list(zip(order, (0, 0, 1, 1), strict=True))
    assert [(row.cell, row.agree) for row in content.rows] == [(names[0], True), (names[1], None)]
    assert [row.seconds_per_epoch and row.seconds_per_epoch.n for row in content.rows] == [2, 2]
    assert [ratio.kind for ratio in content.ratios] == ["determinism"]
    assert {one.dtype: len(one.rates) for one in content.rooflines} == {"float32": 2, "float64": 2}
    assert len(content.imports["pytorch"]) == 2
    assert all((row.cold_start or 0) > 0 and (row.roofline or 0) > 0 for row in content.rows)
    mark = content.rows[0].fingerprints[0][7:15]
    (folder,) = workspace.glob("benchmark/*")
    assert sorted(path.name for path in folder.iterdir()) == ["benchmark.json", "benchmark.md"]
    assert f"✓ {mark}" in done.stdout and f"✓ {mark}" in (folder / "benchmark.md").read_text()
    assert re.search(r"^combinations: 2, up to 2 samples each; a round takes about \d+ s", done.stderr, re.MULTILINE)
    assert (
        len(re.findall(r"^round \d  pytorch/.* s an epoch  \(\d+ s; about \d+ s left\)$", done.stderr, re.MULTILINE))
        == 4
    )


@pytest.mark.slow  # test_speed.py has what follows from other bits
def test_other_bits_end_with_3(run: Run, workspace: Path):
    done = run("benchmark", *SHORT, "numerics=deterministic", "rounds=2", env=planted("pytorch", "chance"))
    assert done.returncode == 3, done.stderr
    assert "NOT REPRODUCIBLE: pytorch/deterministic/cpu/100/2/600: 2 fingerprints" in done.stdout


def test_interrupted(interruptible: None, workspace: Path):
    command = [str(ROOT / "run.sh"), "benchmark", f"--workspace={workspace}", *SHORT, "numerics=deterministic,fast"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, stdout=pipe, stderr=pipe, start_new_session=True) as process:
        assert process.stderr is not None
        while not process.stderr.readline().startswith("round 1"):
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate(timeout=HANG)
    assert process.returncode == 1
    assert "interrupted; what was measured so far is kept" in stderr and "Traceback" not in stderr
    content = left(workspace)
    assert content.interrupted and len(content.samples) == 1
    assert "warning: interrupted: the rows hold what was measured until then" in stdout
    assert not list(workspace.glob("benchmark/*/run"))


@pytest.mark.parametrize("framework", some(config.FRAMEWORKS, "pytorch"))
@pytest.mark.parametrize("baseline", some(cells.BASELINES, "tuned"))
@pytest.mark.deep
def test_a_baseline(baseline: str, framework: str, data_dir: Path):
    python = ROOT / ".venv" / framework / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no environment .venv/{framework}")
    assert baseline in cells.BASELINES
    command = [str(python), "-P", "-s", "-m", f"benchmarks.{baseline}_{framework}", str(data_dir)]
    own = {"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    command += ["--steps=3", "--workers=1"]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, check=False, timeout=HANG)
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout.splitlines()[-1])
    assert (content["batch_size"], content["steps"], content["test_accuracy"]) == (32, 6, None)
    assert content["seconds_per_epoch"] > 0 and content["moments"]["imported"] > 0
    assert content["moments"].get("stepped", 0) > content["moments"]["imported"] or baseline == "tuned"


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frameworks=caffe"], "benchmark.frameworks=[caffe]: must be one or several of pytorch"),
        (["numerics=exact"], "benchmark.numerics=[exact]: must be one or several of fast"),
        (["devices=tpu"], "benchmark.devices=[tpu]: must be one or several of all, cpu, gpu"),
        (["batch_sizes=0,32"], "benchmark.batch_sizes=[0,32]: each must be between 1 and 60000, and stand there once"),
        (["threads=2,2"], "benchmark.threads=[2,2]: each must be between 1 and 1024, and stand there once"),
        (["minutes=0"], "benchmark.minutes=0.0: must be between 0.1 and 100000"),
        (["target=2"], "benchmark.target=2.0: must be between 0 and 1"),
        (["batch_size=32"], "benchmark.batch_size"),
        (["benchmark.round=3"], "did you mean benchmark.rounds?"),
        (["quick"], "cannot read argument 'quick'; write KEY=VALUE"),
        (["against=/no/such/file.json"], "/no/such/file.json does not exist; name a benchmark.json that"),
    ],
)
def test_bad_words(arguments: list[str], said: str, run_here: Run, workspace: Path):
    done = run_here("benchmark", *arguments)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.count("\n") == 1 and said in done.stderr
    assert not (workspace / "benchmark").exists()


def test_no_gpu(run_here: Run, workspace: Path):
    done = run_here("benchmark", "devices=gpu", env={"CUDA_VISIBLE_DEVICES": ""})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "there is no NVIDIA GPU on this machine; use cpu or all" in done.stderr


def test_no_data(run_here: Run, tmp_path: Path):
    done = run_here("benchmark", workspace=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "run the task `download` first" in done.stderr


def test_a_busy_machine_is_said_to_be_one():
    busy = speed.concluded(replace(benchmark(noise=0.001), others_busy=0.5))
    assert busy.warnings == ["the machine is busy: other processes took 0.5 of 2 cores before the first sample"]
