"""A run as Hydra's job: what it keeps of the configuration, and which of Hydra's callbacks hear of it."""

import os
import subprocess
import sys
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parents[2]

HEARD = """
from hydra.experimental.callback import Callback


class Heard(Callback):
    def __getattribute__(self, name):
        return lambda **_: print(name)
"""
JOB = """
import sys
from pathlib import Path
from repro.trainers.loop import config
from repro.commands import job

checked, composed = config.compose_job("jax", Path("nowhere"), sys.argv[1:])
print(job.in_hydra(composed, lambda folder: str(folder)))
"""


def test_a_job_keeps_what_was_checked_and_is_heard_of(tmp_path: Path):
    (tmp_path / "heard.py").write_text(HEARD)
    given = ["params.seed=7", "+hydra.callbacks.one._target_=heard.Heard"]
    env = os.environ | {"WORKSPACE_PATH": str(tmp_path), "PYTHONPATH": f"{REPOSITORY}:{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", JOB, *given], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *heard, folder = done.stdout.splitlines()
    assert heard == ["on_run_start", "on_job_start", "on_job_end", "on_run_end"]
    assert Path(folder).parent == tmp_path / "outputs" / "jax"
    kept = yaml.safe_load((Path(folder) / ".hydra" / "config.yaml").read_text())
    assert (kept["params"]["seed"], "hydra" in kept) == (7, False)
    assert yaml.safe_load((Path(folder) / ".hydra" / "overrides.yaml").read_text()) == ["params.seed=7"]
