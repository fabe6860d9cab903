"""torchvision's operations that find objects."""

import json

from support.programs import program


def test_boxes_and_regions_are_those_of_torchvision() -> None:
    found = json.loads(program("pytorch", "mode_detection.py"))
    assert max(found["far"].values()) < 1e-6, found["far"]
    kept, same = found["boxes"]
    assert 20 < kept < 180
    assert same
    assert found["empty"] == [[0], [0, 3, 2, 2]]
