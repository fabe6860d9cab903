"""The time and the system's entropy, held in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

from repro.inject.origins import BEGUN, CALLS, LIBRARY, _Clock, _ProcessNumber
from support.runs import ROOT

DRAWS = (
    "import json, os, random, secrets, sys, time, uuid; sys.path.insert(0, sys.argv[1]); "
    "from repro.inject import origins; origins.hold(sys.argv[2]); import datetime; random.seed(); "
    "print(json.dumps([time.time_ns(), time.time_ns() % 100000, datetime.datetime.now().microsecond, time.time(), str(datetime.datetime.now(datetime.timezone.utc)), os.urandom(4).hex(), "
    "random.SystemRandom().randrange(9**9), secrets.token_hex(4), str(uuid.uuid4()), random.random(), os.getpid()]))"
)


def drawn(value: str) -> list[object]:
    done = subprocess.run([sys.executable, "-c", DRAWS, str(ROOT), value], capture_output=True, text=True, check=True)
    content = json.loads(done.stdout)
    assert isinstance(content, list)
    return content


def test_each_value_has_its_own_time_and_numbers_and_the_same_in_each_process() -> None:
    first, again, other = drawn("0"), drawn("0"), drawn("77")
    assert first == again
    assert not [pair for pair in zip(first, other, strict=True) if pair[0] == pair[1]]


@pytest.mark.parametrize(("function", "is_held"), [("seed_all", True), ("rank", False)])
def test_of_a_library_functions_that_make_a_seed_alone_have_a_held_process_number(function: str, is_held: bool) -> None:
    number = _ProcessNumber(os.getpid, 1000)
    assert number.get() == 1000

    def call() -> int:
        return number.get()

    place = f"{LIBRARY}/site-packages/some.py"
    call.__code__ = call.__code__.replace(co_filename=place, co_name=function)
    assert call() == (1000 if is_held else os.getpid())


def test_each_forked_child_has_a_process_number_of_its_own() -> None:
    numbers = []
    for children in (1, 2):
        number = _ProcessNumber(os.getpid, 1000)
        for _ in range(children):
            number.count_child()
        number.begin_child()
        numbers.append(number.get())
    assert numbers == [100001, 100002]


@pytest.mark.parametrize("begun", [0, BEGUN * 10**9])
def test_the_clock_goes_on_after_its_first_calls(begun: int) -> None:
    times = iter(range(1000, 10**6, 10))
    clock = _Clock(lambda: next(times), begun)
    asked = [clock.nanoseconds() for _ in range(CALLS + 3)]  # from one line
    early, later = asked[:CALLS], asked[CALLS:]
    assert early == list(range(begun + 1, begun + CALLS + 1))
    assert early[-1] < later[0] and later[1] - later[0] == later[2] - later[1] == 10


def test_a_seed_is_held_though_libraries_have_asked_for_the_time_before() -> None:
    clock = _Clock(iter(range(10**6)).__next__, 0)
    for _ in range(3 * CALLS):
        clock.nanoseconds()
    seed = clock.nanoseconds()
    assert (seed, clock.seconds()) == (1, 1 / 10**9)
