"""`repro verify` of a command.

Each planted fault is named, and a sound training is called the same.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from repro import __main__
from repro.commands.verify import BY_NAME
from repro.errors import INCONCLUSIVE
from repro.record import record
from repro.verify import results
from repro.verify.command_questions import COMMAND_QUESTIONS
from repro.verify.command_runs import Trials
from repro.verify.questions import Change
from repro.verify.trial import Trial
from support.commands import REPRO, SCRIPTS, environment, script
from support.observed import interpreter
from support.runs import HANG, ROOT
from support.waiting import is_gone, until, whole_line

SMALL = ("--out={run}", "--pause=0.02")
TOO_LATE = re.compile("before it could be stopped|nearly done when it was stopped")
"""What is said of a run that was nearly over, or over, when it was to be stopped."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to start commands in, with the data of the script that lists them."""
    monkeypatch.chdir(tmp_path)
    for name in ("PYTHONPATH", "PYTHONHASHSEED"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "data").mkdir()
    for number in range(64):
        (tmp_path / "data" / str(number)).touch()
    return tmp_path


def verify(*words: str) -> tuple[int, dict[str, Any]]:
    """`repro verify WORDS` in this process: the exit code, and the answers by question.

    Where a script of SMALL was stopped too late, as on a busy machine, it is asked again with longer pauses.
    """
    before = set(Path("repro-records").glob("verify-*"))
    for pause in ("0.02", "0.2", "2") if any(SMALL[1] in word for word in words) else ("",):
        code = __main__.main(["verify", "--json", "answers.json", *(slower(word, pause) for word in words)])
        content = json.loads(Path("answers.json").read_text()) if Path("answers.json").exists() else {"answers": []}
        if not any(TOO_LATE.search(answer["why"] or "") for answer in content["answers"]):
            break
        for folder in set(Path("repro-records").glob("verify-*")) - before:
            shutil.rmtree(folder)
    return code, content | {"answers": {answer["question"]: answer for answer in content["answers"]}}


def slower(word: str, pause: str) -> str:
    return word.replace(SMALL[1], f"--pause={pause}")


def resumable(name: str) -> list[str]:
    command = script(name, *SMALL)
    return ["--resume", shlex.join([*command, "--resume"]), "--", *command]


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
    ("name", "channel", "said"),
    [
        ("generator_not_restored", "batch", "the random generator was not restored, so old batches come again"),
        ("dropout_not_restored", "generator", "not restored, so old numbers are drawn again, as for dropout"),
        (
            "momentum_forgotten",
            "optimizer",
            "its optimizer is as after a first step (`w.momentum`): its state was not restored",
        ),
        ("schedule_forgotten", "weights", "the learning rate, or its schedule, was not restored (a guess)"),
        ("weights_changed", "initial weights", "match no step of the whole run"),
    ],
)
def test_a_fault_that_shows_on_resuming(name: str, channel: str, said: str, here: Path) -> None:
    code, content = verify("--ask", "restart,kill", *resumable(name))
    answer = content["answers"]["kill"]
    assert (code, content["answers"]["restart"]["answer"], answer["answer"]) == (3, "same", "differs")
    assert answer["first"]["channel"] == channel and said in answer["why"]


@pytest.mark.parametrize(
    ("options", "channel", "said"),
    [
        ((), "outputs", "it may be what no step shows, such as an average of the weights"),
        (
            ("--watch",),
            "weights",
            "`watch.weight` is equal, `watch.average` is not: it was not restored (a guess)",
        ),
    ],
)
def test_an_average_that_is_not_restored(
    options: tuple[str, ...], channel: str, said: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps that the script itself counts: a run that was killed counts on."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = script("average_forgotten", *SMALL, *options)
    resume = shlex.join([*command, "--resume"])
    code, content = verify("--ask", "kill", "--output", "{run}/model.json", "--resume", resume, "--", *command)
    answer = content["answers"]["kill"]
    assert (code, answer["answer"], answer["first"]["channel"]) == (3, "differs", channel)
    assert said in answer["why"]


def test_a_script_that_counts_on_went_on(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command = script("average_forgotten", *SMALL)
    code, content = verify("--ask", "kill", "--resume", shlex.join([*command, "--resume"]), "--", *command)
    assert code == 0 and re.fullmatch(
        r"went on after step (8|9|10|11) of 12; outputs: 1 \(1 not compared, such as `{run}/model.json`\); not covered: a second resume; not seen: .*",
        content["answers"]["kill"]["why"],
    )


@pytest.mark.slow  # compare/test_difference.py has ranks whose records differ
def test_the_rank_that_is_not_restored_is_named(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    launcher = [interpreter("pytorch"), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*launcher, str(SCRIPTS / "rank_not_restored.py"), "--out={run}"]
    code, content = verify("--ask", "restart,kill", "--resume", shlex.join([*command, "--resume"]), "--", *command)
    answers = content["answers"]
    assert (code, answers["restart"]["answer"], answers["kill"]["answer"]) == (3, "same", "differs")
    first = answers["kill"]["first"]
    assert (first["channel"], first["name"], first["ranks"]) == ("batch", "0.0", [1])
    assert "the generator `torch`" in answers["kill"]["why"] and "not restored" in answers["kill"]["why"]
    told = capfd.readouterr().out
    assert f"step {first['step']}, rank 1, batch: 0.0" in told
    assert "no step of an optimizer was seen" not in told  # of torchrun itself
    assert __main__.main(["report"]) == 0
    page = (here / "repro-records" / "report" / "report.html").read_text()
    assert f"first seen</dt><dd>step {first['step']} in rank 1, in the batch" in page
    (runs,) = here.glob("repro-records/verify-*")
    records = [str(runs / "as-it-stands" / "record"), str(runs / "killed-resumed" / "resumed")]
    assert __main__.main(["compare", *records]) == 3
    assert ", in rank 1, in the batch" in capfd.readouterr().out


def test_stopped_by_sigterm(here: Path) -> None:
    code, content = verify("--ask", "resume", *resumable("momentum_forgotten"))
    assert code == 3 and content["answers"]["resume"]["first"]["channel"] == "optimizer"
    (path,) = here.glob("repro-records/verify-*/results.json")
    result = results.read(path)
    parts = result.runs["command/stopped-resumed"].parts
    assert parts
    stopped, went_on = parts
    assert 0 < went_on.after <= stopped.last < went_on.last == 12
    difference = next(answer.difference for answer in result.answers if answer.question == "resume")
    assert difference and (difference.run, difference.step) == ("command/stopped-resumed", went_on.after + 1)


def test_a_run_that_cannot_be_compared_hides_no_difference_of_another(here: Path) -> None:
    said = 'test "$1" = a && echo 1 > {run}/n || echo "$1" > {run}/m'
    asked = ("--ask", "restart", "--output", "{run}/*", "--vary")
    for values, answer in (("a,b", "differs"), ("a", "cannot tell")):
        _, content = verify(*asked, f"x={{}}:{values}", "--", "sh", "-c", said, "sh")
        assert content["answers"]["x"]["answer"] == answer


def test_a_second_resume_is_asked_beside_the_first(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, content = verify("--ask", "resume,resume_twice", "--output", "{run}/model.json", *resumable("second_resume"))
    answers = content["answers"]
    assert (code, answers["resume"]["answer"], answers["resume_twice"]["answer"]) == (3, "same", "differs")
    said = "resumed for the second time, the first was right: the generator `python` "
    assert answers["resume_twice"]["first"]["channel"] == "batch" and answers["resume_twice"]["why"].startswith(said)
    (runs,) = here.glob("repro-records/verify-*")
    records = [str(runs / "as-it-stands" / "record"), str(runs / "stopped-resumed-twice" / "resumed-2")]
    assert __main__.main(["compare", *records]) == 3
    assert "in the batch" in capfd.readouterr().out


def test_a_first_resume_that_differs_is_not_called_the_second(here: Path) -> None:
    code, content = verify("--ask", "resume_twice", *resumable("momentum_forgotten"))
    answer = content["answers"]["resume_twice"]
    assert (code, answer["answer"], answer["first"]["channel"]) == (3, "differs", "optimizer")
    assert answer["why"].startswith("resumed for the first time: ")


def test_a_sound_training_is_resumed_twice_at_several_points(here: Path) -> None:
    code, content = verify("--ask", "kill,resume_twice", "--stops", "2", *resumable("trainer"))
    answers = content["answers"]
    assert (code, {answer["answer"] for answer in answers.values()}) == (0, {"same"})
    assert re.fullmatch(
        r"went on after step \d+, \d+ of 12; outputs: 2; not seen: .*",
        answers["kill"]["why"],
    )
    assert re.fullmatch(
        r"went on after step \d+ and \d+, \d+ and \d+ of 12; outputs: 2; not seen: .*", answers["resume_twice"]["why"]
    )


def test_a_fault_that_shows_after_the_next_border_needs_an_early_stop(here: Path) -> None:
    """`kill` alone stops after the last border, so it is the same there."""
    words = [word.replace("--pause=0.02", "--pause=0.05") for word in resumable("next_epoch")]
    code, content = verify("--ask", "kill", "--stops", "2", *words)
    answer = content["answers"]["kill"]
    assert (code, answer["answer"], answer["first"]["step"]) == (3, "differs", 7)
    assert answer["why"].startswith("killed, resumed 1: ")


@pytest.mark.parametrize("strict", [(), ("--strict",)])
def test_a_stop_is_moved_on_where_there_was_nothing_to_resume_from(strict: tuple[str, ...], here: Path) -> None:
    """A log, which the command would not read, comes before the first checkpoint."""
    command = script("log_first", *SMALL, *strict)
    words = ("--ask", "kill", "--stops", "2", "--resume", shlex.join([*command, "--resume"]))
    code, content = verify("--to", "runs", *words, "--", *command)
    answer = content["answers"]["kill"]
    assert (code, answer["answer"]) == (0, "same") and answer["why"].startswith("went on after step 5, ")
    assert not [*(here / "runs").glob("*.earlier")]


def test_every_step_is_hashed_to_find_where_a_resumed_run_parts(here: Path) -> None:
    code, content = verify("--every", "5", "--ask", "kill", *resumable("momentum_forgotten"))
    assert code == 3 and content["answers"]["kill"]["first"]["channel"] == "optimizer"


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


@pytest.mark.slow  # compare/test_alignment.py and test_difference.py have records of such runs
def test_two_optimizers_and_an_evaluation_resumed_rightly(here: Path) -> None:
    command = [interpreter("pytorch"), str(SCRIPTS / "two_optimizers.py"), "--out={run}"]
    asked = ["--ask", "resume,kill", "--output", "{run}/model.pt", "--resume", shlex.join(command)]
    code, content = verify(*asked, "--", *command)
    assert {name: answer["answer"] for name, answer in content["answers"].items()} == {"resume": "same", "kill": "same"}
    assert code == 0


def test_a_command_that_did_not_go_on_is_not_called_resumed(here: Path) -> None:
    command = script("trainer", *SMALL)
    code, content = verify("--ask", "kill", "--resume", shlex.join(command), "--", *command)
    assert content["answers"]["kill"]["answer"] == "cannot tell"
    assert "took all 12 steps from the beginning" in content["answers"]["kill"]["why"] and code == INCONCLUSIVE


def test_a_command_that_takes_no_step_is_not_called_resumed(here: Path) -> None:
    code, content = verify("--ask", "kill", "--resume", "true", "--", *script("trainer", "--out={run}"))
    answer = content["answers"]["kill"]
    assert (code, answer["answer"]) == (INCONCLUSIVE, "cannot tell")
    assert "the --resume command took no step" in answer["why"]


def test_a_resume_that_fails_is_told_from_a_command_that_does(here: Path) -> None:
    """A file that was being written is named, if it cannot be read."""
    for cut, said in (("", ""), (": > {run}/cut.pt; ", "; incomplete: `{run}/cut.pt`")):
        resume = f"sh -c '{cut}echo why >&2; exit 4'"
        code, content = verify("--ask", "kill", "--resume", resume, "--", *script("trainer", "--out={run}"))
        answer = content["answers"]["kill"]
        assert (code, answer["answer"]) == (1, "cannot tell")
        assert answer["why"] == f"killed, resumed: the --resume command ended with code 4: why{said}"


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


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--vary", "x", "--", "true"), 2, "--vary 'x': must be NAME=OPTION{}:VALUE,VALUE, as in"),
        (("--stops", "0", "--resume", "true", "--", "true"), 2, "--stops 0: must be 1 or more"),
        (("--stops", "2", "--", "true"), 2, "--stops 2: goes with --resume"),
        (("--ask", "restart,none", "--", "true"), 2, "--ask none: must be some of all,restart,observed"),
        (("--resume", "'", "--", "true"), 2, '--resume "\'": No closing quotation'),
        (("--resume", "", "--", "true"), 2, "is empty"),
        (("--", "/no/such"), 2, "'/no/such' cannot be started"),
        (
            ("--", "true"),
            1,
            "nothing in the command was observed: no step of an optimizer, no output and no metric; name",
        ),
        (("--output", "x*", "--", "true"), 1, "--output x* names no file that the command wrote"),
        (("--", "sh", "-c", "echo first; echo why >&2; exit 4"), 1, "fails as it stands: it ended with code 4: why"),
        (("--", "sh", "-c", "printf '\\033[2J' >&2; exit 4"), 1, "fails as it stands: it ended with code 4"),
        (("--", "sh", "-c", "kill -KILL $$"), 1, "fails as it stands: it was killed by SIGKILL"),
    ],
)
def test_bad_input_is_one_line(
    words: tuple[str, ...], code: int, said: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "answers.json").write_text('{"answers": []}')
    assert verify(*words)[0] == code
    (error,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert said in error and error.isprintable()
    assert (here / "answers.json").read_text() == '{"answers": []}'  # what was there is untouched


def test_a_folder_of_ones_own_for_the_runs(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ("--to", "mine", "--ask", "restart", "--output", "{run}/m", "--", "sh", "-c", "echo 1 > {run}/m")
    assert verify(*words)[0] == 0
    assert (here / "mine" / "again" / "run" / "m").exists() and not (here / "repro-records").exists()
    assert verify(*words)[0] == 2
    assert "error: verify: mine already exists and is not empty" in capfd.readouterr().err


def test_our_own_files_below_the_current_folder_are_no_checkpoint(here: Path) -> None:
    code, content = verify("--to", "mine", "--ask", "kill", *resumable("late_checkpoint"))
    assert code == 0 and content["answers"]["kill"]["why"].startswith(
        "went on after step 10 of 12; outputs: 2; not covered: "
    )


def test_the_runs_own_folder_has_one_path_in_all_runs(here: Path) -> None:
    """Programs write it into their checkpoints."""
    said = "test ! -e {run}/m && echo {run} > {run}/m"
    code, content = verify("--ask", "restart,hash_seed", "--output", "{run}/m", "--", "sh", "-c", said)
    assert code == 0 and {answer["answer"] for answer in content["answers"].values()} == {"same"}


def test_a_file_that_holds_a_time_leaves_the_steps(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trainer = shlex.join(script("trainer", *SMALL))
    asked = ["--ask", "restart,observed,hash_seed", "--output", "{run}/m", "--output", "{run}/n"]
    code, content = verify(*asked, "--", "sh", "-c", f"{trainer}; date +%N > {{run}}/m; echo 1 > {{run}}/n")
    answers = content["answers"]
    assert code == 3
    assert {name: answer["answer"] for name, answer in answers.items()} == {
        "restart": "differs",
        "observed": "same",
        "hash_seed": "same",
    }
    assert answers["restart"]["first"] == {"step": None, "channel": "outputs", "name": "{run}/m"}
    assert "12 steps and outputs: 1" in answers["hash_seed"]["why"]
    told = capfd.readouterr()
    assert "`{run}/m` differs from run to run" in told.out
    assert f"equal but for `{{run}}/m`; without it, both have {content['fingerprint'][:23]}\n" in told.err


def test_files_whose_names_hold_a_time_leave_the_steps(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """As those that TensorBoard reads."""
    trainer = shlex.join(script("trainer", *SMALL))
    asked = ["--ask", "restart,hash_seed", "--output", "{run}/[0-9n]*"]
    code, content = verify(*asked, "--", "sh", "-c", f"{trainer}; echo 1 > {{run}}/$(date +%N); echo 1 > {{run}}/n")
    answers = content["answers"]
    assert code == 3 and {name: answer["answer"] for name, answer in answers.items()} == {
        "restart": "differs",
        "hash_seed": "same",
    }
    assert "12 steps and outputs: 1" in answers["hash_seed"]["why"]
    assert " differ from run to run; all other answers" in " ".join(capfd.readouterr().out.split())


def test_a_command_that_removes_its_folder(here: Path) -> None:
    said = f"echo 1 > {here}/m; rm -r {{run}}"
    code, content = verify("--ask", "restart", "--output", "m", "--", "sh", "-c", said)
    assert (code, content["answers"]["restart"]["answer"]) == (0, "same")


def test_a_command_that_removes_the_current_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "current").mkdir()
    monkeypatch.chdir(here / "current")
    words = ("--to", "../runs", "--output", "{run}/m", "--", "sh", "-c", f"echo 1 > {{run}}/m; rmdir {here}/current")
    try:
        assert __main__.main(["verify", *words]) == 1
    finally:
        os.chdir(here)
    assert "error: the current folder is gone: something removed it" in capfd.readouterr().err
    assert (here / "runs" / "as-it-stands" / "record" / "record.json").exists()


def test_a_name_that_is_no_utf_8(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(b"{run}/a\xff\n")
    words = ("--to", "runs", "--ask", "restart", "--output", "{run}/*")
    code, content = verify(*words, "--", "sh", "-c", 'echo $$ > "$1"', "sh", name)
    assert code == 3 and content["answers"]["restart"]["first"]["name"] == r"{run}/a\udcff\n"
    assert r"a\udcff\n" in capfd.readouterr().out
    assert __main__.main(["compare", "runs/as-it-stands", "runs/again"]) == 3  # a run's folder is taken for its record


def test_a_full_disk_is_not_the_commands_failure(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("repro.files.tempfile.TemporaryFile", full)
    assert __main__.main(["verify", "--to", "runs", "--", "sh", "-c", "exit 4"]) == 1
    told = capfd.readouterr().err
    assert f"error: {here}/runs/as-it-stands: No space left on device; make it" in told and "fails as" not in told


def test_what_is_known_is_shown_though_the_disk_fails_later(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--to", "runs", "--ask", "restart,hash_seed,threads", "--output", "{run}/m")
    command = f"echo 1 > {{run}}/m; test ! -e {here}/runs/pythonhashseed-77-objects-elsewhere || rm -r {here}/runs/pythonhashseed-77-objects-elsewhere"
    code, content = verify(*words, "--", "sh", "-c", command)
    answers = {name: answer["answer"] for name, answer in content["answers"].items()}
    assert (code, answers) == (1, {"restart": "same", "hash_seed": "not asked", "threads": "not asked"})
    told = capfd.readouterr()
    (error,) = [line for line in told.err.splitlines() if line.startswith("error: ")]
    assert "No such file or directory; see that it is there" in error and "restart same" in " ".join(told.out.split())


def test_a_place_for_the_answers_that_cannot_be_written(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["verify", "--json", "no/such.json", "--", "true"]) == 2
    assert "--json no/such.json: cannot be written" in capfd.readouterr().err
    assert not (here / "repro-records").exists()


def test_a_run_that_fails_under_a_change_is_inconclusive(here: Path) -> None:
    code, content = verify(
        "--ask",
        "environment,hash_seed",
        "--output",
        "{run}/m",
        "--",
        "sh",
        "-c",
        'echo 1 > {run}/m; test "$TZ" != Asia/Tokyo',
    )
    answers = content["answers"]
    assert (code, answers["environment"]["answer"], answers["hash_seed"]["answer"]) == (1, "cannot tell", "same")
    assert answers["environment"]["why"] == "elsewhere: it ended with code 1"


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_keeps_what_is_known_and_ends_what_hangs(here: Path) -> None:
    hang = f'echo 1 > {{run}}/m; test -z "$PYTHONHASHSEED" || {{ echo $$ > {here}/pid; sleep {HANG}; }}'
    command = ["verify", "--ask", "restart,hash_seed,threads", "--output", "{run}/m", "--json", "answers.json"]
    with subprocess.Popen([*REPRO, *command, "--", "sh", "-c", hang], cwd=here, env=environment()) as process:
        number = until(lambda: whole_line(here / "pid"), process)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=HANG) == 1
    answers = {one["question"]: one for one in json.loads((here / "answers.json").read_text())["answers"]}
    assert answers["restart"]["answer"] == "same"
    assert (answers["threads"]["answer"], answers["threads"]["why"]) == ("not asked", "interrupted")
    assert ends(int(number))


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 3), (OSError(28, "No space left on device"), 1)])
def test_what_two_runs_have_shown_outlives_the_end_of_all(
    error: BaseException, code: int, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two baseline runs differ, or one of two changed runs; then it ends in the next run."""
    run = Trials.run

    def ended_before(label: str) -> None:
        def runs(self: Trials, change: Change, *rest: Any) -> Trial:
            if change.label not in ("as it stands", "again", label):
                raise error
            return run(self, change, *rest)

        monkeypatch.setattr(Trials, "run", runs)

    ended_before("again")
    result, content = verify("--ask", "restart,threads", "--", *script("time_as_seed", *SMALL))
    answers = content["answers"]
    assert (result, answers["restart"]["answer"], answers["threads"]["answer"]) == (code, "differs", "cannot tell")
    assert "no seed is set" in answers["restart"]["why"]
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    ended_before("PYTHONHASHSEED=0")
    result, content = verify("--ask", "hash_seed,threads", "--", *script("set_order", *SMALL))
    answers = content["answers"]
    assert (result, answers["hash_seed"]["answer"], answers["threads"]["answer"]) == (code, "differs", "not asked")


TWO = f"echo $$ > pid; setsid sh -c 'echo $$ > other; sleep {HANG}' & sleep {HANG}"
"""A command whose second process has a session of its own, as the workers of some launchers have."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.usefixtures("interruptible")
def test_whatever_ends_it_in_the_first_run_ends_the_command(number: signal.Signals, here: Path) -> None:
    with hanging(here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.send_signal(number)
        said, errors = process.communicate(timeout=HANG)
    assert ends(int((here / "pid").read_text())) and ends(int((here / "other").read_text()))
    if number == signal.SIGKILL:
        return
    assert process.returncode == 1 and "Traceback" not in errors and "error" not in errors
    assert "interrupted; what was not run is skipped" in errors and "No question was answered" in said
    (answer,) = json.loads((here / "runs" / "results.json").read_text())["answers"]
    assert (answer["answer"], answer["reason"]) == ("not asked", "interrupted")


@pytest.mark.usefixtures("interruptible")
def test_a_terminal_that_is_gone_costs_no_results(here: Path) -> None:
    terminal, theirs = os.openpty()
    with hanging(here, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        os.close(terminal)
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=HANG) == 1
    assert (here / "runs" / "results.json").exists() and ends(int((here / "pid").read_text()))


def hanging(here: Path, **how: Any) -> subprocess.Popen[Any]:
    """`repro verify` of TWO, of which both processes run, and its guard knows them."""
    command = [*REPRO, "verify", "--to", "runs", "--ask", "restart", "--", "sh", "-c", TWO]
    process = subprocess.Popen(command, cwd=here, env=environment(), **how)
    until(lambda: all(whole_line(here / name) for name in ("pid", "other")), process)
    until(lambda: any(is_ready(child) for child in psutil.Process(process.pid).children()), process)
    return process


def is_ready(process: psutil.Process) -> bool:
    return "repro.record.guard" in process.cmdline() and process.cwd() == "/"


def ends(process: int) -> bool:
    """Waits until a process that was killed is gone: somebody else has to fetch what is left of it."""
    return until(lambda: is_gone(process))


def test_a_full_disk_is_one_line(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("repro.files.os.fsync", full)
    assert __main__.main(["verify", "--ask", "restart", "--", *script("trainer", *SMALL)]) == 1
    (error,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert "No space left on device; make it writable, or free space" in error


def test_a_run_that_differs_ends_there_where_no_other_run_can_read_what_it_leaves(here: Path) -> None:
    for number, options in enumerate((SMALL, ("--out=out", "--pause=0.02"))):
        words = ("--to", f"{number}", "--ask", "seed", "--seed-option", "--seed={}")
        code, content = verify(*words, "--", *script("trainer", *options))
        answer = content["answers"]["seed"]
        assert (code, answer["answer"]) == (0, "differs")
        assert answer["first"] == {"step": 0, "channel": "generator", "name": "python"}
    assert record.read(here / "0" / "another-seed" / "record").steps < 12
    assert record.read(here / "1" / "another-seed" / "record").steps == 12


def test_a_remedy_is_tried_and_the_lines_to_add_are_printed(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = script("listing_order", "--out={run}", "--pause=0")
    code, content = verify("--ask", "file_order", "--cure", "--", *command)
    (cure,) = content["cures"]
    assert (code, cure["question"], cure["cure"]) == (3, "file_order", ["sorted listings"])
    assert cure["tried"][0]["result"] == "same in 6 runs"
    told = capfd.readouterr().out
    assert "6 of 6 runs with it are equal, 2 of 2 runs without differ from the baseline." in told
    assert "  script: sorted(...) around os.listdir, os.scandir, glob.glob, Path.iterdir and Path.glob\n" in told
