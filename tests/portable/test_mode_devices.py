"""Operations of the mode on a CPU and on a GPU."""

import pytest

from support.programs import program

pytestmark = pytest.mark.deep


@pytest.mark.gpu
def test_operations_have_the_same_bits_on_a_gpu() -> None:
    assert program("pytorch", "mode_devices.py", "cuda").splitlines() == ["155 operations compared, 0 differ"]
