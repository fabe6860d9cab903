"""Errors of one line, with exit codes.

What, where, the value, the remedy.
"""


class ReproError(Exception):
    """The task failed while it ran: data, disk, device, checkpoint. Exit code 1."""

    exit_code = 1


class UsageError(ReproError):
    """The command line or the configuration is wrong; nothing has been started. Exit code 2."""

    exit_code = 2


NOT_REPRODUCIBLE = 3
"""The exit code where all went well, and two runs that should be the same are not."""

INCONCLUSIVE = 4
"""The exit code where all went well, and what was asked was not answered."""
