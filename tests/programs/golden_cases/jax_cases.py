"""Operations of golden/operations.txt that JAX alone has."""

from programs.golden_cases.cases import Case

CASES: dict[str, Case] = {}
