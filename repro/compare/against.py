"""A run that is compared with a record as it goes on, from its end.

The first difference, and the arrays of both sides there.
"""

import logging
import tempfile
from dataclasses import dataclass
from pathlib import Path

from repro.compare import comparison
from repro.compare.comparison import Comparison
from repro.compare.difference import Difference
from repro.compare.live import Live
from repro.compare.rerun_command import Rerun
from repro.errors import ReproError, UsageError
from repro.record import record
from repro.record.record import KEPT, Record

log = logging.getLogger(__name__)


def recorded(path: Path, every: int) -> Record:
    """The record that a run can be compared with. UsageError where there is none, ReproError where it cannot be believed."""
    result = record.read(path / "record" if record.is_one(path / "record") else path)
    if not result.steps and not result.outputs:
        raise UsageError(f"record: --against {path}: holds no step and no output, so nothing can be compared with it")
    if every not in (1, result.content.every):
        raise UsageError(
            f"record: --every {every}: {path} was recorded with --every {result.content.every}; leave the option out to hash the same steps"
        )
    return result


@dataclass
class Against:
    """The end of such a run."""

    live: Live
    seen: Record
    """The run's own record."""

    def comparison(self) -> Comparison:
        """Explains the first difference. UsageError where nothing can be compared."""
        a = self.live.recorded
        if not self.live.over:
            return comparison.compare(a.path, self.seen.path)
        return comparison.of_commands(a, self.seen, self.live.first_difference(self.seen.processes))

    def keep_recorded(self, difference: Difference) -> bool:
        """Keeps the record's arrays, if need be by running its command again; returns whether that succeeded."""
        a = self.live.recorded
        if difference.pair is None or difference.step is None:
            return False
        if (a.path / KEPT).is_dir():
            return True
        try:
            self._rerun(a, max(difference.step, 1))
        except ReproError as error:
            log.warning("the arrays of %s are not kept: %s", a.path, str(error).partition(": ")[2])
            return False
        return True

    def _rerun(self, a: Record, step: int) -> None:
        rerun = Rerun(a, str(a.path), "record: --keep")
        rerun.show()
        if not rerun.own:
            raise UsageError(
                "record: it was not recorded by you on this machine, so its command is not run; record it with --keep"
            )
        with tempfile.TemporaryDirectory(prefix=".again-", dir=self.seen.path) as scratch:
            rerun(Path(scratch), step, keep=True)
            for array in (Path(scratch) / "record" / KEPT).iterdir():
                array.replace(self.seen.path / KEPT / array.name)
