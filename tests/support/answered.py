"""Results of a command whose questions were answered so, and audits of it."""

from collections.abc import Mapping, Sequence

from msgspec import structs

from repro.verify.audits import Audit, ReceiptHash, Segment
from repro.verify.questions import AnswerWord
from repro.verify.results import Answer, Cpu, Machine, Results, Run, Settings
from support.results_files import sha256

TYPED = "python train.py '--out={run}'"
ALL_SAME: dict[str, AnswerWord] = dict.fromkeys(
    ("restart", "resume", "kill", "threads", "cores", "instruction_set", "container"), "same"
)
OURS, THEIRS = f"SHA256:{'o' * 43}", f"SHA256:{'t' * 43}"
SAME_BITS = sha256("weights")


def machine(
    model: str = "Imaginary 9000", platform: str = "Linux-6.1-x86_64-with-glibc2.36", usable: int = 2
) -> Machine:
    return Machine(cpu=Cpu("x86_64", "ImaginaryCPU", model, "avx512f", 2, 2, usable), gpu=[], platform=platform)


def answer(question: str, word: AnswerWord, control: bool = False) -> Answer:
    return Answer(
        question=question,
        title=question.title(),
        framework="command",
        numerics=TYPED,
        promise=None,
        answer=word,
        kept=None,
        control=control,
        evidence="record",
        reason=None,
        runs=[],
        difference=None,
    )


def verified(
    answers: Mapping[str, AnswerWord],
    fingerprint: str | None = SAME_BITS,
    on: Machine | None = None,
    commit: str | None = "c0ffee",
    created: str = "2026-11-28T00:00:00+00:00",
    others: Sequence[Answer] = (),
) -> Results:
    """What `verify` of a command leaves that was answered so."""
    source = {"commit": commit, "dirty": False}
    facts = {"versions": {"python": "3.12.1", "torch": "2.15.0"}, "scripts": {"train.py": "5"}, "source": source}
    run = Run(
        task="command",
        numerics=TYPED,
        label="as it stands",
        command=TYPED,
        status="done",
        steps=3,
        seconds=1.0,
        fingerprint=fingerprint,
        experiment={"facts": facts},
    )
    return Results(
        schema=1,
        created=created,
        seconds=1.0,
        machine=on or machine(),
        settings=Settings(3, list(answers), ["command"], [TYPED], []),
        runs={"command/as-it-stands": run},
        answers=[*(answer(name, word) for name, word in answers.items()), *others],
    )


def audit(**fields) -> Audit:
    known = Audit(
        schema=1,
        verdict="same",
        fingerprint=SAME_BITS,
        date="2026-11-29T00:00:00+00:00",
        machine=machine("Auditor's"),
        signer=OURS,
        auditor=THEIRS,
        segments=[Segment(0, 3, "same")],
        receipt=ReceiptHash("0" * 64),
    )
    return structs.replace(known, **fields)
