"""`repro verify` of a command: each planted fault that shows without resuming is named, and a sound training is called the same."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from repro import __main__
from repro.commands.verify import BY_NAME
from repro.errors import INCONCLUSIVE
from repro.verify.command_questions import COMMAND_QUESTIONS
from support.commands import script
from support.runs import ROOT
from support.verified import SMALL, resumable, verify

pytestmark = pytest.mark.usefixtures("data")


def test_a_sound_training_is_the_same_in_all_that_is_asked(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, content = verify("--seed-option", "--seed={}", "--output", "{run}/*", *resumable("trainer"))
    answers = {name: answer["answer"] for name, answer in content["answers"].items()}
    assert [*answers] == [one.name for one in COMMAND_QUESTIONS if one.name not in BY_NAME]
    alike = ("restart", "observed", "hash_seed", "environment", "threads", "resume", "kill")
    assert {name: answers[name] for name in alike} == dict.fromkeys(alike, "same")
    assert (answers["seed"], answers["file_order"]) == ("differs", "cannot tell")
    assert content["answers"]["seed"]["first"] == {"step": 0, "channel": "generator", "name": "python"}
    assert (answers["container"], content["answers"]["container"]["why"]) == ("not asked", "--image names no image")
    assert content["steps"] == 12 and content["fingerprint"].startswith("sha256:")
    assert content.keys() == {"steps", "fingerprint", "answers", "levels", "warnings"}
    (level,) = content["levels"]
    assert level["level"] >= 2 and level["fingerprint"] == content["fingerprint"]
    assert level["rows"][4]["answer"] == "not asked"
    assert all(
        a.keys() - {"controls"} == {"question", "answer", "promised", "first", "why"}
        for a in content["answers"].values()
    )
    assert code == 0
    told = capfd.readouterr()
    assert "as they should be" in told.out and "about" in told.err


@pytest.mark.parametrize(
    ("name", "question", "channel", "said"),
    [
        (
            "set_order",
            "restart",
            "batch",
            "the order of a set, or hash(), decides: 3 runs with PYTHONHASHSEED=0 are the same",
        ),
        (
            "time_as_seed",
            "restart",
            "generator",
            "a seed is taken from the time, the process number or the system's entropy: 3 runs with seed=0,origin=0",
        ),
        ("listing_order", "file_order", "batch", "sort what os.listdir or glob gives"),
    ],
)
def test_a_fault_that_shows_without_resuming(name: str, question: str, channel: str, said: str, here: Path) -> None:
    code, content = verify("--ask", f"{question},environment", "--", *script(name, *SMALL))
    answer = content["answers"][question]
    assert (code, answer["answer"], answer["first"]["channel"]) == (3, "differs", channel)
    assert said in answer["why"]
    other = content["answers"]["environment"]["answer"]
    assert other == ("cannot tell" if question == "restart" else "same")


def test_a_set_under_a_fixed_hash_seed_shows_by_another_one(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "3")
    code, content = verify("--ask", "restart,hash_seed", "--", *script("set_order", *SMALL))
    assert code == 3 and content["answers"]["restart"]["answer"] == "same"
    assert "the order of a set" in content["answers"]["hash_seed"]["why"]


def test_two_runs_of_a_race_that_end_alike_are_no_set(here: Path) -> None:
    """The third and the fourth of all runs end alike, the only ones."""
    race = "echo >> count; n=$(wc -l < count); test $n = 4 && n=3; echo $n > {run}/m"
    code, content = verify("--ask", "restart", "--output", "{run}/m", "--", "sh", "-c", race)
    why = content["answers"]["restart"]["why"]
    assert code == 3 and why.startswith("the files differ, and no step was seen")


@pytest.mark.parametrize(
    ("value", "answer", "said"),
    [
        ("1", "same", "3 runs, outputs: 1"),
        ("${MALLOC_PERTURB_:-85}", "differs", "only the byte that fills fresh memory was changed, so memory that"),
        ("${MALLOC_PERTURB_:+1}", "differs", "whatever fills fresh memory, the bits differ from those without"),
        ("${MALLOC_PERTURB_:+$$}", "differs", "two runs with one change (MALLOC_PERTURB_=85) differ from each other"),
    ],
)
def test_memory_decides_where_another_byte_gives_other_bits(value: str, answer: str, said: str, here: Path) -> None:
    code, content = verify("--ask", "memory", "--output", "{run}/m", "--", "sh", "-c", f"echo {value} > {{run}}/m")
    answers = content["answers"]["memory"]
    assert (code, answers["answer"]) == (0 if answer == "same" else 3, answer) and answers["why"].startswith(said)


def test_slowed_threads_show_a_race(here: Path) -> None:
    code, content = verify("--ask", "restart,races", "--", *script("race_of_threads", *SMALL))
    answers = content["answers"]
    assert (code, answers["restart"]["answer"], answers["races"]["answer"]) == (3, "same", "differs")
    assert "only threads, workers and ranks were slowed, so which of them" in answers["races"]["why"]
    code, content = verify("--ask", "races", "--", *script("trainer", *SMALL))
    assert (code, content["answers"]["races"]["answer"]) == (INCONCLUSIVE, "cannot tell")
    assert content["answers"]["races"]["why"].startswith("nothing was slowed: no thread of Python, no worker and no")


def test_a_date_or_a_duration_that_decides(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("repro.verify.surroundings.FAKETIME", "no-faketime")
    code, content = verify("--ask", "restart,time", "--", *script("date_as_seed", *SMALL))
    answers = content["answers"]
    assert (code, answers["restart"]["answer"], answers["time"]["answer"]) == (3, "same", "differs")
    assert answers["time"]["why"].startswith("400 days later: only the clock was changed, so a date or a duration")
    code, content = verify("--ask", "time", "--", *script("trainer", *SMALL))
    assert (code, content["answers"]["time"]["answer"]) == (0, "same")
    assert content["answers"]["time"]["why"].endswith("with the program faketime, that of C and C++ is, too")
    code, content = verify("--ask", "time", "--output", "{run}/m", "--", "sh", "-c", "date +%Y > {run}/m")
    assert content["answers"]["time"]["why"].startswith("the observer was not loaded")


def test_faketime_changes_the_clock_where_it_is_installed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "bin").mkdir()
    faketime = here / "bin" / "faketime"
    faketime.write_text('#!/bin/sh\necho "$*" >> faked\ntest "$1" = -f && export SAID="$2" && shift 2 && exec "$@"\n')
    faketime.chmod(0o755)
    monkeypatch.setenv("PATH", f"{here}/bin{os.pathsep}{os.environ['PATH']}")
    said = 'echo "$SAID$REPRO_CHANGES$NO_FAKE_STAT" > {run}/m'
    code, content = verify("--to", "runs", "--ask", "time", "--output", "{run}/m", "--", "sh", "-c", said)
    assert (code, content["answers"]["time"]["answer"]) == (3, "differs")
    assert (here / "runs" / "400-days-later" / "run" / "m").read_text() == "+400d1\n"
    assert [line.split(" sh ")[0] for line in (here / "faked").read_text().splitlines()[:2]] == ["-f +400d", "-f +0 x4"]
    assert "NO_FAKE_STAT=1 faketime -f +400d sh -c" in (here / "runs" / "results.json").read_text()


def test_a_race_is_told_though_two_runs_are_the_same(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("repro.verify.command.race", lambda record: f"{len(record.processes)} process")
    code, _ = verify("--ask", "restart", "--", *script("trainer", *SMALL))
    assert code == 0 and "note: 1 process\n" in capfd.readouterr().out


def test_runs_that_write_to_one_place_are_named(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _ = verify("--ask", "restart", "--", *script("trainer", "--pause=0"))
    told = " ".join(capfd.readouterr().out.split())
    assert code == 0 and "both runs wrote to one place: out/checkpoint.json, out/model.json" in told
    assert "Put {run} into the command" in told


def test_a_file_that_another_program_writes_is_not_ascribed_to_the_command(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is written once in each run, by what the observer is not loaded into."""
    other = "import os, sys; os.environ.pop('REPRO_OBSERVE'); os.execvp('sh', ['sh', '-c', 'echo $$ > notes'])"
    command = f"{shlex.quote(sys.executable)} -S -c {shlex.quote(other)}; exec {shlex.join(script('trainer', *SMALL))}"
    assert verify("--ask", "restart", "--", "sh", "-c", command)[0] == 0
    told = " ".join(capfd.readouterr().out.split())
    assert (here / "notes").exists() and "wrote to one place" not in told


def test_a_run_that_finds_the_end_of_the_one_before(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, content = verify("--ask", "restart", "--", *script("trainer", "--pause=0", "--steps=11", "--resume"))
    assert code == 3
    why = content["answers"]["restart"]["why"]
    said = "the second run starts from the weights of step 10 of the first run: it went on from what an earlier run had left"
    assert f"{said}; the first run left out/checkpoint.json, out/model.json, which the second may have read" in why
    assert " ".join(capfd.readouterr().out.split()).count("Put {run} into the command") == 1


def test_a_run_that_finds_nothing_left_to_do(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    code, content = verify("--ask", "restart,hash_seed", "--output", "weight", "--", *script("goes_on_by_itself"))
    answers = content["answers"]
    assert (code, answers["restart"]["answer"], answers["hash_seed"]["answer"]) == (3, "differs", "cannot tell")
    said = (
        "one run took no step, the other 5; the first run left weight, which the second may have read. Put {run} into"
    )
    assert said in answers["restart"]["why"]


def test_a_run_that_what_was_left_before_ends(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ("sh", "-c", "test ! -e m && echo 1 > m")
    assert verify("--ask", "restart", "--output", "m", "--", *command)[0] == 1
    (error,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert "fails when it is run again: it ended with code 1; the first run left m, which the second may" in error


def test_a_command_that_is_seen_by_its_outputs_alone(here: Path) -> None:
    said = 'import sys; open(sys.argv[1], "w").write("1")'
    options = ("--ask", "restart,observed,kill", "--output", "{run}/m", "--resume", "true")
    code, content = verify(*options, "--", sys.executable, "-c", said, "{run}/m")
    answers = {name: answer["answer"] for name, answer in content["answers"].items()}
    assert (code, answers) == (INCONCLUSIVE, {"restart": "same", "observed": "same", "kill": "cannot tell"})
    code, content = verify("--ask", "restart", "--output", "{run}/m", "--", "sh", "-c", "echo $$ > {run}/m")
    assert code == 3
    assert content["answers"]["restart"]["first"] == {"step": None, "channel": "outputs", "name": "{run}/m"}


def test_a_step_that_is_not_seen_whole_is_inconclusive(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    code, content = verify("--ask", "restart,hash_seed", "--", *script("unseen"))
    answers = content["answers"].values()
    assert (code, [answer["answer"] for answer in answers]) == (INCONCLUSIVE, ["cannot tell"] * 2)
    said = "step 3: watch.unreadable, of type Unreadable, is not hashed: its values are elsewhere"
    assert {answer["why"] for answer in answers} == {f"not every step was fully observed: {said}"}
    (runs,) = here.glob("repro-records/verify-*")
    records = [str(runs / name / "record") for name in ("as-it-stands", "again")]
    capfd.readouterr()
    assert __main__.main(["compare", *records]) == INCONCLUSIVE
    assert said in " ".join(capfd.readouterr().out.split())


def test_a_difference_that_is_seen_beside_what_is_not(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    code, content = verify("--ask", "restart", "--", *script("unseen", "--differs"))
    answer = content["answers"]["restart"]
    assert (code, answer["answer"], answer["first"]["step"]) == (3, "differs", 6)


def test_a_command_that_loses_the_observer(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It lists a folder, whose order decides what it writes."""
    said = "import os; open(os.environ['OUT'], 'w').write(' '.join(os.listdir('data')))"
    asked = ["--ask", "restart,observed,file_order,kill", "--output", "{run}/m", "--resume", "true"]
    wrapper = f'OUT={{run}}/m PYTHONPATH=/tmp exec {shlex.quote(sys.executable)} -c "{said}"'
    code, content = verify(*asked, "--", "sh", "-c", wrapper)
    answers = content["answers"]
    assert (code, answers["restart"]["answer"]) == (INCONCLUSIVE, "same")
    for name in ("observed", "file_order", "kill"):
        assert answers[name]["answer"] == "cannot tell"
        assert answers[name]["why"].startswith("the observer was not loaded: no Python process of the command")
    told = capfd.readouterr().out
    assert "note: the observer was not loaded" in told
    assert "1 of 1 as they should be; inconclusive: observed, file_order, kill." in told
    code, content = verify(*asked[:-2], "--", "sh", "-c", wrapper.replace("PYTHONPATH=/tmp ", ""))
    answers = content["answers"]
    assert (code, answers["observed"]["answer"], answers["file_order"]["answer"]) == (3, "same", "differs")


def test_an_observer_that_changes_bits_is_found(here: Path) -> None:
    code, content = verify(
        "--ask", "observed", "--output", "{run}/m", "--", "sh", "-c", "echo $REPRO_OBSERVE_EVERY > {run}/m"
    )
    assert code == 3 and content["answers"]["observed"]["first"]["name"] == "{run}/m"


def test_a_control_that_changes_nothing_is_a_broken_promise(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, content = verify("--ask", "seed", "--seed-option", "--steps=12", "--", *script("trainer", *SMALL))
    assert code == 2  # no {}, where the seed goes
    code, content = verify(
        "--ask", "seed", "--seed-option", "--x={}", "--output", "{run}/m", "--", "sh", "-c", "echo 1 > {run}/m"
    )
    assert code == 3 and content["answers"]["seed"]["answer"] == "same"
    assert "0 of 1 as they should be; the control has no effect: seed." in capsys.readouterr().out


def test_an_option_that_should_change_nothing(here: Path) -> None:
    """... with what it writes besides, and one that should change something, of which one value does not."""
    asked = ["--ask", "restart", "--output", "{run}/*", "--vary", "evaluation=--evaluate-every={}:50,5"]
    more = [
        "--vary",
        "pause={}:--pause=0.01",
        "--vary",
        "seed_=--seed={}:0,1:differs",
        "--vary",
        "x=--seed={}:0:differs",
    ]
    code, content = verify(*asked, *more, "--", *script("evaluation_draws", *SMALL, "--evaluate-every=100"))
    answers = content["answers"]
    result = {name: (answer["promised"], answer["answer"]) for name, answer in answers.items()}
    assert (code, result) == (
        3,
        {
            "restart": ("same", "same"),
            "evaluation": ("same", "differs"),
            "pause": ("same", "same"),
            "seed_": ("differs", "differs"),
            "x": ("differs", "same"),
        },
    )
    assert answers["evaluation"]["first"] == {"step": 6, "channel": "batch", "name": "0"}
    assert answers["evaluation"]["why"] == (
        "evaluation 2: --evaluate-every=5: only this option was changed, and it draws from `python`, or seeds it: "
        "let it use its own generator"
    )
    code, content = verify(*asked[:-1], "evaluation=--evaluate-every={}:50", "--", *script("evaluation_draws", *SMALL))
    said = "2 runs, 12 steps and outputs: 2; 2 outputs not compared, as only some runs wrote them"
    assert (code, content["answers"]["evaluation"]["why"]) == (0, said)
