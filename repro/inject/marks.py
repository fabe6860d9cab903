"""What a change found to change in a process: an empty file of the record for each."""

import os

MARK = "changed-"  # of files in the record's `steps` folder


def leave(name: str) -> None:
    """Leaves a mark that something of this name was changed, where the process is observed."""
    folder = os.environ.get("REPRO_OBSERVE")
    if folder:
        with open(os.path.join(folder, "steps", MARK + name), "w"):
            pass
