"""float16, bfloat16 and autocast under the mode for any PyTorch program."""

import json

import pytest

from support.programs import program

pytestmark = pytest.mark.deep

EPSILON = {"torch.bfloat16": 2.0**-8, "torch.float16": 2.0**-11}


def test_a_network_of_halves_has_one_result_with_any_threads_and_gradients_close_to_pytorchs_own() -> None:
    content = json.loads(program("pytorch", "mode_halves.py"))
    assert len(content) == 4
    for kind, (one, two, away) in content.items():
        assert one == two, kind
        assert away < 16 * EPSILON[kind.split(",")[0]], kind
