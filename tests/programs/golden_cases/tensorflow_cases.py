"""Operations of golden/operations.txt that TensorFlow alone has."""

from programs.golden_cases.cases import Case

CASES: dict[str, Case] = {}
