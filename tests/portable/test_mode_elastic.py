"""`repro portable --elastic`: one fingerprint, however a batch is split into micro-batches and ranks."""

import json

import pytest

from support.programs import program


def test_micro_batches_of_an_mlp_change_no_bit() -> None:
    results = json.loads(program("pytorch", "mode_elastic.py", "mlp"))
    assert list(results) == ["1 x 32", "2 x 16", "4 x 8"]
    assert len({*results.values()}) == 1


@pytest.mark.deep
@pytest.mark.xdist_group("ports")
@pytest.mark.parametrize("network", ["mlp", "cnn", "gpt", "lstm"])
def test_micro_batches_and_ranks_change_no_bit(network: str) -> None:
    results = json.loads(program("pytorch", "mode_elastic.py", network, "2", "4"))
    assert len(results) == 3 + 2 * 2 + 4 * 2
    assert len({*results.values()}) == 1


@pytest.mark.deep
def test_what_is_no_sum_over_samples_is_refused() -> None:
    results = json.loads(program("pytorch", "elastic_refusals.py"))
    assert results["taken"] == [""] * 7
    for name, error in results["refused"].items():
        assert error.startswith("portable numerics: --elastic: "), name
        assert "\n" not in error
    for name in ("synchronized", "synchronized_by_ddp"):
        assert "SyncBatchNorm: samples of all ranks are normalized together" in results["refused"][name]
    assert "dropout: it draws for a batch" in results["refused"]["attention_with_dropout"]
    assert "was changed, and more is added" in results["refused"]["changed"]


def test_gradients_of_few_and_of_many_rows_are_those_that_the_specification_has() -> None:
    assert json.loads(program("pytorch", "elastic_reference.py")) == [[True, True]] * 4
