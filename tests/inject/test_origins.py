"""The time and the system's entropy, held in a process of its own."""

import json
import subprocess
import sys

import pytest

from repro.inject.origins import BEGUN, CALLS, _Clock
from support.runs import ROOT

DRAWS = (
    "import json, os, random, secrets, sys, time, uuid; sys.path.insert(0, sys.argv[1]); "
    "from repro.inject import origins; origins.hold(sys.argv[2]); import datetime; random.seed(); "
    "print(json.dumps([time.time_ns(), time.time_ns() % 100000, datetime.datetime.now().microsecond, time.time(), str(datetime.datetime.now(datetime.timezone.utc)), os.urandom(4).hex(), "
    "random.SystemRandom().randrange(9**9), secrets.token_hex(4), str(uuid.uuid4()), random.random()]))"
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
