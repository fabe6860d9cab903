"""Later dates inside a process."""

import os
import subprocess
import sys

import pytest

from repro.record.injection import SITE

READ = """
import sys, time, copy
%s
import datetime
class Own(datetime.datetime): pass
utc = datetime.timezone.utc
assert type(Own.now()) is Own and type(datetime.datetime.now()) is datetime.datetime
now = datetime.datetime.now(utc); assert copy.deepcopy(now) == now and copy.deepcopy(now).tzinfo is utc
assert time.localtime(0).tm_year in (1969, 1970) and time.strftime("%%Y", time.gmtime(0)) == "1970"
begun = time.perf_counter(); assert abs(time.time_ns() / 1e9 - time.time()) < 3600 > time.perf_counter() - begun
print(*[year for year in (
    time.gmtime(time.time()).tm_year, time.gmtime().tm_year, time.localtime().tm_year, time.ctime()[-4:],
    time.asctime()[-4:], time.strftime("%%Y"), datetime.date.today().year, datetime.datetime.today().year,
    datetime.datetime.now().year, datetime.datetime.now(utc).year, datetime.datetime.utcnow().year, Own.now().year)])
"""


@pytest.mark.parametrize("before", ["", "import datetime"])
def test_every_clock_of_python_is_moved(before: str) -> None:
    years = []
    for moved in ({}, {"PYTHONPATH": str(SITE), "REPRO_CHANGES": f"date={86400 * 3653}"}):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", READ % before],
            env=os.environ | {"TZ": "UTC"} | moved,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        years.append([int(year) for year in done.stdout.split()])
    assert years[1] == [year + 10 for year in years[0]] and len({*years[0]}) == 1
