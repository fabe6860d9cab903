"""Facts of the machine: where the code comes from, and what it runs in."""

import subprocess
from pathlib import Path

from repro.machine import facts


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_the_source_is_the_commit_and_whether_files_differ_from_it(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(facts, "ROOT", tmp_path)
    monkeypatch.setattr(facts, "COMMIT", tmp_path / "COMMIT")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message=first")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert facts.source() == {"commit": commit, "dirty": False}
    (tmp_path / "new").touch()
    assert facts.source() == {"commit": commit, "dirty": True}


def test_in_an_image_the_commit_stands_in_a_file(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(facts, "COMMIT", tmp_path / "COMMIT")
    (tmp_path / "COMMIT").write_text("abc123\n")
    assert facts.source()["commit"] == "abc123"


def test_without_a_repository_the_commit_is_unknown(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(facts, "ROOT", tmp_path)
    monkeypatch.setattr(facts, "COMMIT", tmp_path / "COMMIT")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert facts.source() == {"commit": None, "dirty": None}


def test_the_container_names_its_engine_and_image(tmp_path: Path, monkeypatch):
    for name in ("REPRO_IMAGE", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(facts, "COMMIT", tmp_path / "COMMIT")
    assert facts.container() is None
    monkeypatch.setenv("APPTAINER_CONTAINER", "/images/repro.sif")
    assert facts.container() == {"engine": "apptainer", "image": "/images/repro.sif"}
    monkeypatch.delenv("APPTAINER_CONTAINER")
    (tmp_path / "COMMIT").touch()
    monkeypatch.setenv("REPRO_IMAGE", "sha256:12")
    assert facts.container() == {"engine": "docker", "image": "sha256:12"}
