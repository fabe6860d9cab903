"""docs/evidence: the results files there are whole, private to nobody, and have the fingerprints of their version."""

import json
import re
from pathlib import Path

import pytest

from repro.verify import results
from support.runs import ROOT

FOLDER = ROOT / "docs" / "evidence"
FILES = sorted(FOLDER.glob("*.json"))
PUBLISHED = dict(line.split() for line in (FOLDER / "first-version.txt").read_text().splitlines()[1:])
OWN = re.compile(r"/(home|root|tmp|var|work|srv|opt|mnt|Users)/")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
class TestEvidence:
    def test_every_portable_run_has_the_published_fingerprint(self, path: Path) -> None:
        content = results.read(path)
        portable = [run for run in content.runs.values() if run.numerics == "portable"]
        done = [run for run in portable if run.status == "done"]
        assert len(done) > 1
        for run in done:
            assert run.fingerprint == PUBLISHED[f"sgd/step-{run.steps}"], run.label
            assert run.experiment and run.experiment["sha256"]["initial_weights"] == PUBLISHED["initial"]
        assert content.answers and all(answer.kept for answer in content.answers)

    def test_no_folder_of_the_machine_is_named(self, path: Path) -> None:
        assert not OWN.findall(json.dumps(json.loads(path.read_text())))


def test_there_is_evidence() -> None:
    assert FILES
