"""What is said of a score that differs in other batches."""

import pytest

from repro.compare.metrics import MetricDifference
from repro.record.metric_values import Metric
from repro.verify.batch_sizes import BEYOND, ROUNDED, _size


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ("2.3025851", "2.3025853", ROUNDED),
        ("0.2250", "0.2550", BEYOND),
        ("-1.5", "1.5", BEYOND),
        ("0", "1e-9", BEYOND),
    ],
)
def test_sums_in_another_order_change_last_digits_alone(ours: str, theirs: str, said: str) -> None:
    assert _size(MetricDifference(Metric("stdout", "loss", "", ours), theirs)) == said
