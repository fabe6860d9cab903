"""Options that `--vary` knows by a word."""

from pathlib import Path

import pytest

from repro.errors import UsageError
from repro.verify import vary
from repro.verify.known_options import WORDS, expanded

SCRIPT = 'parser.add_argument("--num_workers", type=int)\nparser.add_argument("--compile", action="store_true")\n'


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("workers", ["python", "x.py", "--num-workers=4"], "workers=--num-workers={}:0,2"),
        ("workers", ["python", "x.py", "--workers", "2"], "workers=--workers={}:0,4"),
        ("workers", ["python", "x.py", "-j", "0"], "workers=-j {}:2,4"),
        ("workers:1,3", ["python", "x.py", "-j", "0"], "workers=-j {}:1,3"),
        ("workers:1,3:differs", ["x", "--workers=0"], "workers=--workers={}:1,3:differs"),
        ("ranks", ["torchrun", "--nproc-per-node=2", "x.py"], "ranks=--nproc-per-node={}:1"),
        ("ranks", ["accelerate", "launch", "--num_processes", "1", "x.py"], "ranks=--num_processes={}:2"),
        ("a=--b={}:1", [], "a=--b={}:1"),
        ("workers=--b={}:1", ["x", "--workers=0"], "workers=--b={}:1"),
    ],
)
def test_an_option_of_the_command_line(text: str, words: list[str], expected: str) -> None:
    assert expanded(text, words) == expected


@pytest.mark.parametrize(
    ("word", "script", "expected"),
    [
        ("workers", SCRIPT, "workers=--num_workers={}:0,2"),
        ("compile", SCRIPT, "compile={}:--compile"),
        ("workers", "HfArgumentParser(TrainingArguments)", "workers=--dataloader_num_workers={}:0,2"),
        ("compile", "HfArgumentParser(TrainingArguments)", "compile={}:--torch_compile"),
        ("ranks", "LightningCLI(Model, Data)", "ranks=--trainer.devices={}:1"),
    ],
)
def test_an_option_of_the_script(word: str, script: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "a script.py"
    path.write_text(script)
    assert expanded(word, ["python", "-u", str(path), "--epochs=1"]) == expected
    (question,) = vary.questions([word], (), ["python", str(path)])
    assert question.name == word and question.promise == (("same", "same") if word != "ranks" else (None, None))


def test_what_has_no_known_option_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("import torch  # num_workers=2, --workers")
    for word in WORDS:
        with pytest.raises(UsageError) as error:
            expanded(word, ["python", str(path), str(tmp_path / "missing.py")])
        assert str(error.value).startswith(f"verify: --vary {word}: no option for it is known, ")
        assert "; name it, as in --vary '" in str(error.value)
    with pytest.raises(UsageError) as error:
        expanded("compile", ["python", str(path), "--compile"])
    assert (
        str(error.value) == "verify: --vary compile: --compile is in the command already; leave it out: verify adds it"
    )
