"""Sweeps: refusals, the command of each run, and the report."""

import json
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from repro.errors import ReproError, UsageError
from repro.frameworks import FRAMEWORKS
from repro.report import sweep_report
from repro.trainers import sweep
from repro.trainers.loop.config import Config, Data, Params
from support.runs import ROOT, Run, needs

pytestmark = pytest.mark.spread

BITS = ["sha256:" + digit * 64 for digit in "abcdef"]


class TestBefore:
    def test_combinations(self) -> None:
        result = list(sweep.combinations(["params.seed=0,1", "params.max_steps=5", "params.momentum=0.5,0.9"]))
        assert result == [
            [f"params.seed={seed}", "params.max_steps=5", f"params.momentum={momentum}"]
            for seed in (0, 1)
            for momentum in (0.5, 0.9)
        ]

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["frameworks=torch"], "frameworks=torch: must be one or several of pytorch, tensorflow, jax"),
            (["sif=/nowhere.sif"], "sif=/nowhere.sif: there is no such image"),
            (["params.sed=0,1"], "did you mean params.seed?"),
            (["params.ranks=2,3"], "params.ranks=3: must divide params.batch_size_train=32"),
            (["params.seed=[0"], "params.seed=[0"),
            (["hydra/launcher=joblib"], "hydra-joblib-launcher is not installed; requirements/install.sh sweep"),
            (["hydra/launcher=nothing"], "Could not find 'hydra/launcher/nothing'"),
        ],
    )
    def test_refused(self, arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORKSPACE_PATH", str(tmp_path))
        with pytest.raises(UsageError, match=re.escape(said)):
            sweep.sweep(tmp_path, arguments)
        assert not list(tmp_path.iterdir())


class TestCommand:
    KEYS = ("params.seed=1",)

    def command(self, sif: str | None) -> list[str]:
        return sweep.command_of(Path("/w s"), Path("outputs/sweep/a/0"), "jax", sif, list(self.KEYS))

    def test_on_the_host(self) -> None:
        first, task, workspace, *keys = self.command(None)
        assert (first, task, workspace) == (str(ROOT / "run.sh"), "jax", "--workspace=/w s")
        place = "${oc.env:WORKSPACE_PATH}/outputs/sweep/a/0"
        assert keys == [
            "params.resume=auto",
            *self.KEYS,
            f"hydra.run.dir={place}/run",
            f"output.model_path={place}/model",
        ]

    def test_in_a_container(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        inside = self.command("/images/repro.sif")
        assert inside[0] == "singularity" and inside[inside.index("--network") + 1] == "none"
        assert "--containall" in inside and inside[inside.index("--env") + 1] == "CUDA_VISIBLE_DEVICES=1"
        rest = inside[inside.index("/w s:/workspace") + 1 :]
        assert rest == ["/images/repro.sif", "jax", "--workspace=/workspace", *self.command(None)[3:]]


def left(
    folder: Path,
    number: int,
    task: str,
    seed: int,
    fingerprint: str | None,
    accuracy: float = 0.9,
    samples: int = 60_000,
    **params,
) -> None:
    """Makes what a run of a sweep leaves."""
    place = folder / str(number)
    (place / ".hydra").mkdir(parents=True)
    (place / "run").mkdir()
    (place / ".hydra" / "overrides.yaml").write_text(f"- +framework={task}\n- params.seed={seed}\n- +sif='x'\n")
    (place / "run.log").write_text("results in x\nerror: <no> memory\n")
    configured = Config(Params(seed=seed, **params), Data())
    record = {
        "task": task,
        "framework": {"device": "cpu"},
        "sha256": {"final_weights": fingerprint},
        "config": {
            "params": vars(configured.params),
            "environment": {},
            "data": {"dataset": "mnist", "train_samples": samples},
        },
    }
    (place / "run" / "experiment.json").write_text(json.dumps(record))
    line = {"step": 10, "test_accuracy": accuracy, "test_loss": 1.0, "train_seconds": 2.0, "test_seconds": 0.5}
    (place / "run" / "metrics.jsonl").write_text(json.dumps(line) + "\n")


class TestReport:
    def test_over_seeds(self, tmp_path: Path) -> None:
        for number, accuracy in enumerate((0.90, 0.92, 0.97)):
            left(tmp_path, number, "jax", number, BITS[number], accuracy)
        left(tmp_path, 10, "jax", 0, BITS[3], 0.5, learning_rate=0.1)
        report = sweep_report.build(sweep_report.read(tmp_path))
        over_seeds, _ = sweep_report.tables(report)
        assert over_seeds.rows == [
            ["JAX", "deterministic", "params.learning_rate=0.01", "10", "3", "93.00", "3.61", "90.00 to 97.00", "2.5"],
            ["JAX", "deterministic", "params.learning_rate=0.1", "10", "1", "50.00", "", "50.00 to 50.00", "2.5"],
        ]
        assert sweep_report.verdict(report) == "No two runs promise the same bits, so none were compared."

    def test_a_run_made_twice_must_agree_and_is_one_sample(self, tmp_path: Path) -> None:
        left(tmp_path, 0, "jax", 0, BITS[0])
        left(tmp_path, 1, "jax", 0, BITS[0])
        left(tmp_path, 2, "pytorch", 0, BITS[1])  # another framework, in deterministic: nothing promised
        report = sweep_report.build(sweep_report.read(tmp_path))
        assert report.agree == [["0", "1"]] and not report.disagree
        assert [row[4] for row in sweep_report.tables(report)[0].rows] == ["1", "1"]
        assert sweep_report.verdict(report) == "Runs that must agree do, to the bit: 0, 1."

    def test_fewer_samples_are_another_run(self, tmp_path: Path) -> None:
        left(tmp_path, 0, "jax", 0, BITS[0])
        left(tmp_path, 1, "jax", 0, BITS[1], samples=6000)
        report = sweep_report.build(sweep_report.read(tmp_path))
        assert not report.agree and not report.disagree
        assert [row[2] for row in sweep_report.tables(report)[0].rows] == [
            "data.train_samples=60000",
            "data.train_samples=6000",
        ]

    def test_two_that_differ(self, tmp_path: Path) -> None:
        left(tmp_path, 0, "jax", 0, BITS[0])
        left(tmp_path, 1, "jax", 0, BITS[1])
        report = sweep_report.build(sweep_report.read(tmp_path))
        assert report.disagree == [["0", "1"]] and "Runs 0, 1 must agree, and differ." in sweep_report.verdict(report)

    @pytest.mark.parametrize(("numerics", "pairs"), [("portable", 1), ("deterministic", 0), ("fast", 0)])
    def test_ranks_and_frameworks_change_nothing_in_portable(self, tmp_path: Path, numerics: str, pairs: int) -> None:
        left(tmp_path, 0, "jax", 0, BITS[0], numerics=numerics)
        left(tmp_path, 1, "pytorch", 0, BITS[0], numerics=numerics, ranks=2, threads=1)
        assert len(sweep_report.build(sweep_report.read(tmp_path)).agree) == pairs

    def test_fast_promises_nothing(self, tmp_path: Path) -> None:
        left(tmp_path, 0, "jax", 0, BITS[0], numerics="fast")
        left(tmp_path, 1, "jax", 0, BITS[1], numerics="fast")
        report = sweep_report.build(sweep_report.read(tmp_path))
        assert not report.agree and not report.disagree

    def test_failed(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        left(tmp_path, 0, "jax", 0, BITS[0])
        left(tmp_path, 1, "jax", 1, None)
        left(tmp_path, 2, "jax", 2, None)
        shutil.rmtree(tmp_path / "2" / "run")
        report = sweep_report.report(tmp_path / "report", tmp_path)
        assert report.failed == ["1", "2"]
        assert report.runs[2].error == "error: <no> memory"
        text = (tmp_path / "report" / "sweep.md").read_text()
        assert "2 of 3 runs failed: 1, 2." in text
        assert f"| 0 | params.seed=0 | done | 90.00 | 2.5 | {BITS[0][7:15]} |" in text
        assert "| 2 | params.seed=2 | error: \\<no\\> memory |  |  |  |" in text
        assert json.loads((tmp_path / "report" / "sweep.json").read_text()) == msgspec.to_builtins(report)
        printed = capsys.readouterr()
        assert "2 of 3 runs failed: 1, 2." in printed.out and BITS[0][7:15] in printed.out
        assert printed.err == f"report in {tmp_path / 'report' / 'sweep.md'}\n"

    def test_no_sweep(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is not the folder of a sweep"):
            sweep_report.read(tmp_path)

    def test_a_run_that_cannot_be_read(self, tmp_path: Path) -> None:
        left(tmp_path, 0, "jax", 0, BITS[0])
        (tmp_path / "0" / "run" / "metrics.jsonl").write_text("{")
        with pytest.raises(ReproError, match="cannot be read"):
            sweep_report.read(tmp_path)


@pytest.mark.parametrize("launcher", ["basic", pytest.param("joblib", marks=pytest.mark.slow)])
def test_a_sweep_from_end_to_end(launcher: str, run: Run, workspace: Path) -> None:
    if launcher == "joblib" and not (ROOT / ".venv" / "sweep" / "installed").exists():
        pytest.skip("no environment .venv/sweep; make it with: requirements/install.sh sweep")
    needs("pytorch")
    seeds = "0,1" if launcher == "joblib" else "1"
    varied = ("frameworks=pytorch", f"params.seed={seeds}", "params.threads=1,2")
    keys = (
        *varied,
        "params.numerics=portable",
        "params.max_steps=2",
        "params.device=cpu",
        f"hydra/launcher={launcher}",
    )
    done = run("sweep", *keys)
    assert done.returncode == 0, done.stderr
    assert f"Runs that must agree do, to the bit: 0, 1{'; 2, 3' * (launcher == 'joblib')}." in done.stdout
    (folder,) = (workspace / "outputs" / "sweep").iterdir()
    again = run("report", str(folder))
    assert (again.returncode, again.stdout) == (0, done.stdout)
    record = json.loads((max(folder.glob("?")) / "run" / "experiment.json").read_text())
    assert record["config"]["params"]["seed"] == 1 and record["config"]["params"]["threads"] == 2
    assert record["task"] == next(iter(FRAMEWORKS))
