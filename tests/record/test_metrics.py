"""Metrics in what a program prints and in its files, and what looks like one and is none."""

import json
from pathlib import Path

import pytest

from repro.errors import ReproError
from repro.record import metric_files, metrics, printed, record
from repro.record.metric_names import is_metric, is_place, is_score
from repro.record.metric_values import Metric
from support.commands import straight, write

BAR = "\rTest:  50%|█████     | 5/10 [00:00<00:00, 95.1it/s, loss=0.9]\rTest: 100%|██████████| 10/10 [00:00<00:00, 97.2it/s, loss=0.5]"
KERAS = "\x1b[1m1/8\x1b[0m ━━━━ \x1b[1m6s\x1b[0m 900ms/step - loss: 1.9\x08\x08\r\x1b[1m8/8\x1b[0m ━━━━ \x1b[1m1s\x1b[0m 9ms/step - accuracy: 0.25 - loss: 1.8"


def shown(text: str) -> list[str]:
    """The metrics of a text, as `NAME @ PLACE = VALUE`."""
    found = printed.metrics("stdout", text.encode())
    return [" ".join(filter(None, [one.name, one.at and f"@ {one.at}", f"= {one.value}"])) for one in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loss 0.123", ["loss = 0.123"]),
        ("epoch 3: val_acc=0.91", ["val_acc @ epoch 3 = 0.91"]),
        ('{"step": 10, "loss": 0.12, "time": 3.5}', ["loss @ step 10 = 0.12"]),
        ("{'eval_loss': 0.7, 'eval_runtime': 1.2, 'epoch': 1.0}", ["eval_loss @ epoch 1.0 = 0.7"]),
        ("Epoch [3/10], Step [100/600], Loss: 0.1234", ["Loss @ epoch 3, step 100 = 0.1234"]),
        (
            "Train Epoch: 1 [640/60000 (1%)]\tLoss: 2.305400\nTest set: Average loss: 0.0298, Accuracy: 9905/10000 (99%)",
            [
                "Loss @ epoch 1 = 2.305400",
                "Average loss @ after epoch 1 = 0.0298",
                "Accuracy @ after epoch 1 = 9905/10000",
            ],
        ),
        (
            "step:125/1000 val_loss:3.2785 train_time:12345ms step_avg:98.76ms",
            ["val_loss @ step 125 = 3.2785"],
        ),
        ("iter 10: loss 4.2, time 123.4ms, mfu 12.3%", ["loss @ iter 10 = 4.2"]),
        ("2026-11-28 04:42:38,123 - INFO - mAP@0.5 = 0.412", ["mAP@0.5 = 0.412"]),
        ("| rollout/ep_rew_mean | 22.1 |", ["rollout/ep_rew_mean = 22.1"]),
        ("accuracy                           0.97     10000", ["accuracy = 0.97"]),
        (
            "Epoch 2/5\nloss: nan\nval loss: -1.5e-05",
            ["loss @ after epoch 2 = nan", "val loss @ after epoch 2 = -1.5e-05"],
        ),
        ("loss: tensor(0.5, device='cpu') acc: [91.2%]", ["loss = 0.5", "acc = 91.2"]),
        (BAR, ["loss = 0.5"]),
        (KERAS, ["accuracy = 0.25", "loss = 1.8"]),
    ],
)
def test_a_score_that_is_printed(text: str, expected: list[str]) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "took 12.3 s, 1234.5 samples/s",
        "loss time: 0.5",
        "average 0.123s per step",
        "mean: 12.5 ms",
        "Loss 2.1.0 is installed",
        "accuracy module of 2026-11-28, error at 04:42:38",
        "PyTorch 2.15, Python 3.11",
        "memory: 3.2 GB, score memory: 12",
        "UNKNOWN ERROR (303)",
        "error 404",
        "pid 1234, port: 8080, seed: 7, threads: 4, num_workers=2",
        "Using 4 processes, epoch 3/10",
        "\r 50%|█████     | 5/10 [00:00<00:00, 95.1it/s, loss=0.9]",
        "100%|██████████| 10/10 [00:00<00:00, 97.2it/s, loss=0.",
        "3it [00:00, 95.1it/s, loss=0.9]",
        "│ test_loss │ 0.123 │",
        "│ loss: 0.123 │",
        '{"lr": 0.1, "eval_every": 5}',
    ],
)
def test_a_number_that_is_no_score(text: str) -> None:
    assert shown(text) == []


@pytest.mark.parametrize(
    ("name", "metric", "score"),
    [
        ("valLoss", True, True),
        ("f1_macro", True, True),
        ("learning_rate", True, False),
        ("train_samples_per_second", False, False),
        ("step_time", False, False),
        ("it/s", False, False),
        ("system/cpu", False, False),
        ("eta", False, False),
    ],
)
def test_names(name: str, metric: bool, score: bool) -> None:
    assert (is_metric(name), is_score(name)) == (metric, score)


def test_a_place_is_no_metric() -> None:
    assert is_place("global_step") and is_place("Train Epoch") and not is_place("epoch_loss")
    assert not is_metric("global_step")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("log.csv", "epoch,loss,seconds\n1,0.5,3\n2,0.25,4\n", ["loss epoch 1 0.5", "loss epoch 2 0.25"]),
        ("log.jsonl", '{"step": 1, "loss": 0.5, "lr": 0.1}\n', ["loss step 1 0.5", "lr step 1 0.1"]),
        (
            "trainer_state.json",
            '{"global_step": 4, "log_history": [{"loss": 0.5, "step": 2, "epoch": 1.0}]}',
            ["loss step 2, epoch 1.0 0.5"],
        ),
        ("metrics.json", '{"test": {"accuracy": 0.9, "runtime": 2.0}}', ["test.accuracy  0.9"]),
        ("history.json", '{"loss": [0.5, 0.25]}', ["loss value 1 0.5", "loss value 2 0.25"]),
        ("predictions.csv", "id,loss\n1,0.5\n", []),
        ("log.csv", "no,header\x00\n", []),
        ("log.jsonl", "{not JSON\n", []),
        ("metrics.json", "[" * 100_000, []),
    ],
)
def test_metrics_in_a_file(name: str, text: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert metric_files.may_hold(tmp_path / name)
    found = metric_files.metrics(name, tmp_path / name)
    assert [f"{one.name} {one.at} {one.value}" for one in found] == expected


def recorded(folder: Path, *values: str) -> Path:
    """A record whose metric `loss` has these values."""
    path = write(folder, straight(2))
    digest = metrics.write(path, [Metric(source="stdout", name="loss", at="", value=value) for value in values])
    content = json.loads((path / record.FILE).read_text())
    (path / record.FILE).write_text(json.dumps(content | {"metrics": digest}))
    return path


def test_a_record_holds_its_metrics(tmp_path: Path) -> None:
    assert [one.value for one in record.read(recorded(tmp_path / "a", "0.5", "0.25")).metrics] == ["0.5", "0.25"]
    assert record.read(write(tmp_path / "older", straight(2))).metrics == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file: file.write_text(file.read_text().replace("0.5", "0.6")), "was changed"),
        (lambda file: file.write_text("{}\n"), "line 1: Object missing required field"),
        (lambda file: file.unlink(), "was cut off"),
    ],
)
def test_a_record_whose_metrics_were_changed(change: object, said: str, tmp_path: Path) -> None:
    path = recorded(tmp_path / "a", "0.5")
    assert callable(change)
    change(path / metrics.FILE)
    with pytest.raises(ReproError, match=said):
        record.read(path)
