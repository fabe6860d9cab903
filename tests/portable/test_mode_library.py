"""PyTorch's own modules under the mode, and the library's."""

import pytest

from support.programs import program

pytestmark = pytest.mark.deep


def test_modules_have_the_bits_of_the_library_s() -> None:
    assert program("pytorch", "mode_library.py").splitlines() == ["7 modules compared, 0 differ"]
