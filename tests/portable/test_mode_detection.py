"""torchvision's operations that find objects, and its way to resize images."""

import json

import pytest

from repro.verify.command_questions import SSE4
from support.programs import program

pytestmark = pytest.mark.deep


def test_boxes_and_regions_are_those_of_torchvision() -> None:
    content = json.loads(program("pytorch", "mode_detection.py", **dict(SSE4)))  # where it takes another way by itself
    assert max(content["far"].values()) < 1e-6, content["far"]
    kept, same = content["boxes"]
    assert 20 < kept < 180
    assert same
    assert content["resized"] == [True, True, "AVX2"] and content["capability"]
    assert content["empty"] == [[0], [0, 3, 2, 2]]
