"""Errors of one line, with exit codes.

What, where, the value, the remedy.
"""

import os


class ReproError(Exception):
    """The task failed while it ran: data, disk, device, checkpoint. Exit code 1."""

    exit_code = 1


class UsageError(ReproError):
    """The command line or the configuration is wrong; nothing has been started. Exit code 2."""

    exit_code = 2


class NotRecordedError(ReproError):
    """The command ended, and its record could not be written. Exit code: the command's."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def explained(error: OSError) -> str:
    """Describes an error of the system: the path, the message, the remedy."""
    where = error.filename2 or error.filename or os.environ.get("WORKSPACE_PATH")  # a failed write does not say where
    missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
    remedy = "see that it is there, and that nothing removes it" if missing else "make it writable, or free space"
    return f"{where}: {error.strerror or error}; {remedy}" if where else f"{error.strerror or error}; {remedy}"


NOT_REPRODUCIBLE = 3
"""The exit code where all went well, and two runs that should be the same are not."""

INCONCLUSIVE = 4
"""The exit code where all went well, and what was asked was not answered."""
