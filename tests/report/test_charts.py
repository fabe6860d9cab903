"""The scales and paths of charts.

Every value lies inside, round numbers stand at the ticks, equal points overlap.
"""

import pytest

from repro.report import charts


@pytest.mark.parametrize(
    "values", [[0.0, 1.0], [3.0], [0.0], [0.1, 0.1], [2.31, 0.2, 1.7], [100.0, 7500.0], [-5e-7, 1e-6]]
)
def test_linear(values: list[float]):
    scale = charts.linear(values)
    places = [scale.place(tick) for tick, _ in scale.ticks]
    assert places[0] == 0 and places[-1] == pytest.approx(1) and places == sorted(places)
    assert 3 <= len(places) <= 7
    assert all(-1e-6 <= scale.place(value) <= 1 + 1e-6 for value in values)
    assert all(float(label) == pytest.approx(tick) for tick, label in scale.ticks)


@pytest.mark.parametrize("values", [[1e-8, 1e-3], [1.0], [0.0, 2e-7], [], [1e-300, 1e90]])
def test_logarithmic(values: list[float]):
    scale = charts.logarithmic(values)
    assert (scale.ticks[0], scale.place(0.0)) == ((0.0, "0"), 0.0)
    assert len(scale.ticks) <= 8
    assert all(0 < scale.place(value) <= 1 for value in values if value > 0)


def test_powers_of_ten_are_written_as_such_and_lie_evenly():
    scale = charts.logarithmic([1e-3, 1.0])
    assert [label for _, label in scale.ticks] == ["0", "10⁻³", "10⁻²", "10⁻¹", "10⁰"]
    assert [scale.place(tick) for tick, _ in scale.ticks] == pytest.approx([0, 0.25, 0.5, 0.75, 1])


def test_chart():
    points = [(float(x), float(x)) for x in range(0, 11, 5)]
    many = [(float(x), 10.0 - x / 10) for x in range(101)]
    drawn = charts.chart(
        "title", [charts.Line("jax", points), charts.Line("pytorch", many)], charts.linear([0.0, 10.0])
    )
    first, second = drawn.lines
    left, right, top, bottom = charts.LEFT, charts.RIGHT, charts.TOP, charts.BOTTOM
    assert first.path.startswith(f"M{float(left)} {float(bottom)}L")
    assert second.path.startswith(f"M{float(left)} {float(top)}L")
    assert second.path.endswith(f"L{float(right)} {float(bottom)}")
    assert len(first.marks) == 3 and second.marks == []
