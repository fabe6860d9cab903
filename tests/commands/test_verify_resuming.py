"""`repro verify` of a command that resumes: what is not restored is named, and what is restored is called the same."""

import re
import shlex
from pathlib import Path

import pytest

from repro import __main__
from repro.errors import INCONCLUSIVE
from repro.verify import results
from support.commands import SCRIPTS, script
from support.observed import interpreter
from support.runs import ROOT
from support.verified import SMALL, resumable, verify

pytestmark = pytest.mark.usefixtures("data")


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
