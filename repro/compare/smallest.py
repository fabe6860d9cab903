"""The smallest set that makes a difference: delta debugging.

A. Zeller and R. Hildebrandt, Simplifying and isolating failure-inducing input, IEEE TSE 28(2), 2002: `ddmin`.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def smallest(items: Sequence[Item], makes: Callable[[list[Item]], bool]) -> list[Item]:
    """A set of which nothing can be left out, where all of `items` together make what is asked for.

    `makes` is asked of no set twice.
    """
    known: dict[tuple[int, ...], bool] = {}

    def asked(numbers: tuple[int, ...]) -> bool:
        if numbers not in known:
            known[numbers] = makes([items[number] for number in numbers])
        return known[numbers]

    held, parts = tuple(range(len(items))), 2
    while len(held) > 1:
        cut = [held[len(held) * n // parts : len(held) * (n + 1) // parts] for n in range(parts)]
        rest = [tuple(number for number in held if number not in part) for part in cut]
        if part := next((part for part in cut if asked(part)), None):
            held, parts = part, 2
        elif left := next((left for left in rest if parts > 2 and asked(left)), None):
            held, parts = left, max(parts - 1, 2)
        elif parts == len(held):
            break
        else:
            parts = min(2 * parts, len(held))
    return [items[number] for number in held]
