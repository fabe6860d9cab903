"""The workflow that publishes: two jobs, of which only the second may ask for an identity; every action is pinned."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

import repro
from support.packages import UV, reach
from support.runs import ROOT

WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


@pytest.fixture(scope="module")
def jobs() -> dict[str, Any]:
    return yaml.safe_load(WORKFLOW.read_text())["jobs"]


def test_only_the_job_that_runs_no_code_of_ours_may_ask_for_an_identity(jobs: dict[str, Any]) -> None:
    assert yaml.safe_load(WORKFLOW.read_text())["permissions"] == {}
    assert {name: job["permissions"] for name, job in jobs.items()} == {
        "build": {"contents": "read"},
        "publish": {"id-token": "write"},
    }
    assert not [step for step in jobs["publish"]["steps"] if "run" in step]
    assert jobs["publish"]["needs"] == "build"


def test_every_action_is_pinned_by_its_commit(jobs: dict[str, Any]) -> None:
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert used and [name for name in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []


def test_no_step_runs_text_that_a_tag_could_hold(jobs: dict[str, Any]) -> None:
    assert not [step for job in jobs.values() for step in job["steps"] if "${{" in step.get("run", "")]


@pytest.mark.parametrize("tag", [f"v{repro.__version__}", "v9.9.9"])
def test_a_tag_of_another_version_is_refused(tag: str, jobs: dict[str, Any], tmp_path: Path, wheel: Path) -> None:
    """`uvx` is a stand-in here, which says the version of the wheel."""
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / wheel.name).write_bytes(wheel.read_bytes())
    (tmp_path / "uvx").write_text(f"#!/bin/sh\necho 'repro {wheel.name.split('-')[1]}'\n")
    (tmp_path / "uvx").chmod(0o755)
    (step,) = [step for step in jobs["build"]["steps"] if step.get("name") == "Try"]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_REF_NAME": tag}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, "error: the tag is v9.9.9" in done.stderr) == ((1, True) if "9" in tag else (0, False))


def test_it_is_of_githubs_schema() -> None:
    reach(UV, "tool", "run", "check-jsonschema", "--builtin-schema=vendor.github-workflows", WORKFLOW)
