"""results.json, written and read.

What is written can be read, and whatever cannot be believed is refused in one line that says why, and where.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from repro.errors import ReproError, UsageError
from repro.structs import checksum
from repro.verify import planted, results
from support.results_files import Json, plain
from support.results_files import results as made

RUN = "deterministic/pytorch/as-configured"
WRITTEN = sorted((Path(__file__).parent / "data").glob("*.json"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.json"


def text_of(content: Json) -> str:
    """A file with a checksum that matches."""
    return json.dumps(content | {"seal": checksum(content)})


def refusal(path: Path) -> str:
    """The one line that read() refuses a file with."""
    with pytest.raises(ReproError) as caught:
        results.read(path)
    line = str(caught.value)
    assert str(path) in line and "\n" not in line
    return line


@pytest.mark.parametrize("written", WRITTEN, ids=lambda path: path.stem)
def test_a_file_of_schema_1_is_read_and_written_as_it_was(written: Path, path: Path):
    """tests/verify/data holds one file of each kind, as the first version wrote them."""
    results.write(path, results.read(written))
    before, after = json.loads(written.read_text()), json.loads(path.read_text())
    assert after == before and list(after) == list(before)
    if written.stem != "command":  # whose runs had their keys in another order
        assert path.read_bytes() == written.read_bytes()


def test_what_is_written_is_read(path: Path):
    results.write(path, made())
    assert json.loads(path.read_text()) == json.loads(text_of(plain()))
    read = results.read(path)
    read.seal = ""
    assert read == made()


def test_what_cannot_be_read_is_not_written(path: Path):
    content = made()
    content.answers[0].answer = "differs"
    with pytest.raises(ReproError, match="does not follow"):
        results.write(path, content)
    assert not path.exists()


def test_the_checksum_is_of_all_else(path: Path):
    text = text_of(plain())
    assert checksum(json.loads(text)) == checksum(dict(reversed(json.loads(text).items())))
    path.write_text(text.replace("Imaginary 9000", "Imaginary 9001"))
    assert "was changed after it was written" in refusal(path)
    path.write_text(json.dumps({key: value for key, value in json.loads(text).items() if key != "seal"}))
    assert "checksum does not match" in refusal(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        (b"\xff{}", "is not JSON"),
        (text_of(plain())[:5000], "is not JSON"),
        ("[1]", "holds no results"),
        ('{"task": "pytorch"}', "holds no results"),
        ('{"schema": 1}', "holds no results"),
        ('{"schema": 2, "answers": []}', "has schema 2, this version reads 1; make it again with this version"),
        ('{"schema": 1, "answers": ' + "[" * 100 + "]" * 100 + "}", "nested deeper than"),
    ],
)
def test_no_results(path: Path, text: str | bytes, said: str):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert said in refusal(path)


def test_missing_file_or_folder(path: Path):
    with pytest.raises(UsageError, match="does not exist; name a results"):
        results.read(path)
    path.mkdir()
    assert "cannot be read" in refusal(path)


def at(*place: str | int, value: object) -> Callable[[Json], None]:
    """Puts a value at a place in the content."""

    def change(content: Json) -> None:
        inner: Any = content
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value

    return change


OTHER = "sha256:" + "0" * 64
THREADS = next(i for i, answer in enumerate(plain()["answers"]) if answer["question"] == "threads")
FLAWS: list[tuple[str, Callable[[Json], None]]] = [
    ("Expected `object`, got `int` - at `$.runs[...]`", at("runs", "x", value=7)),
    ("at `$.created`", at("created", value="today")),
    ("missing required field `created`", lambda content: content.pop("created")),
    ("Expected `object`, got `str` - at `$.machine.gpu[0]`", at("machine", "gpu", value=["fast"])),
    ("'yes' - at `$.answers[0].answer`", at("answers", 0, "answer", value="yes")),
    ("Expected `bool | null`, got `int` - at `$.answers[0].kept`", at("answers", 0, "kept", value=1)),
    ("Expected `str`, got `null` - at `$.answers[0].runs[0]`", at("answers", 0, "runs", value=[None])),
    ("at `$.runs[...].fingerprint`", at("runs", RUN, "fingerprint", value="sha256:7")),
    ("Expected `int`, got `bool` - at `$.runs[...].steps`", at("runs", RUN, "steps", value=True)),
    ("at `$.runs[...].losses[0]`", at("runs", RUN, "losses", value=[float("nan")] * 10)),
    ("at `$.runs[...].seconds`", at("runs", RUN, "seconds", value=float("inf"))),
    ("Expected `int` <= 9007199254740992 - at `$.runs[...].steps`", at("runs", RUN, "steps", value=10**200)),
    (
        f"Expected `int`, got `str` - at `$.answers[{THREADS}].difference.growth[0].step`",
        at("answers", THREADS, "difference", "growth", value=[{"step": "1", "relative": 0}]),
    ),
    (
        f"the experiment of run {RUN}: Object missing required field `data` - at `$.config`",
        at("runs", RUN, "experiment", value={"config": {"params": {}}}),
    ),
]
CONTRADICTIONS: dict[str, Callable[[Json], None]] = {
    "rests on a run that is missing (x)": at("answers", 0, "runs", value=["x", RUN]),
    "is 'differs', which does not follow": at("answers", 0, "answer", value="differs"),
    "is 'same', which does not follow": at("answers", 0, "runs", value=[RUN, RUN]),
    "restart_cpu, pytorch, deterministic is 'same', which does not": at(
        "answers", 0, "runs", value=[RUN, "deterministic/jax/as-configured"]
    ),
    "promised 'same', kept False": at("answers", 0, "kept", value=False),
    "promised None, kept True": at("answers", THREADS, "kept", value=True),
    "is failed, with the fingerprint sha256:": at("runs", RUN, "status", value="failed"),
    "is done, with the fingerprint None": at("runs", RUN, "fingerprint", value=None),
    "another fingerprint than its experiment.json": at(
        "runs", RUN, "experiment", "sha256", "final_weights", value=OTHER
    ),
    "another fingerprint than its experiment.json or metrics": at(
        "runs", RUN, "metrics", 0, "fingerprint", value=OTHER
    ),
    "has 10 losses at 1 steps": at("runs", RUN, "loss_steps", value=[1]),
}


@pytest.mark.parametrize(("said", "change"), [*FLAWS, *CONTRADICTIONS.items()])
def test_contradiction(path: Path, said: str, change: Callable[[Json], None]):
    content = plain()
    change(content)
    path.write_text(text_of(content))
    line = refusal(path)
    assert said in line and "copy it again" in line


def test_a_failed_run_allows_no_answer(path: Path):
    content = plain()
    name = content["answers"][0]["runs"][1]
    content["runs"][name] |= {"status": "failed", "error": "out of memory", "fingerprint": None, "evaluation": None}
    path.write_text(text_of(content))
    assert "does not follow from its runs" in refusal(path)
    content["answers"][0] |= {"answer": "not asked", "kept": None}
    for answer in content["answers"][1:]:
        assert name not in answer["runs"]
    path.write_text(text_of(content))
    assert results.read(path).answers[0].answer == "not asked"


def test_two_failed_runs_are_not_the_same(path: Path):
    content = plain()
    for name in content["answers"][0]["runs"]:
        content["runs"][name] |= {"status": "failed", "error": "out of memory", "fingerprint": None}
    content["answers"] = content["answers"][:1]
    path.write_text(text_of(content))
    assert "does not follow from its runs" in refusal(path)


def test_an_answer_about_the_evaluation_rests_on_the_evaluation(path: Path):
    content = plain()
    content["answers"][0]["evidence"] = "evaluation"
    content["runs"][content["answers"][0]["runs"][1]]["evaluation"] = "0x1p-1 0.9"
    path.write_text(text_of(content))
    assert "does not follow" in refusal(path)
    content["answers"][0] |= {"answer": "differs", "kept": False}
    path.write_text(text_of(content))
    assert results.read(path).answers[0].kept is False


def test_the_counts_of_planted_faults_are_those_of_the_faults(path: Path):
    content = made()
    faults = [
        planted.PlantedFault("slots", "seen", step=3, channel="weights"),
        planted.PlantedFault("average", "not seen"),
    ]
    content.answers[0].controls = planted.Controls(planted=2, seen=1, seconds=3.0, faults=faults)
    results.write(path, content)
    assert results.read(path).answers[0].controls == content.answers[0].controls
    content.answers[0].controls.seen = 2
    with pytest.raises(ReproError, match="are not as many as it says"):
        results.write(path, content)
