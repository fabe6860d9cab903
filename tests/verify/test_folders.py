"""Results without a machine's folders."""

from pathlib import Path

from repro.verify.folders import without_folders
from repro.verify.results import Cause

NAMES = {Path("/home/me/run"): "DIR", Path("/home/me"): "~", Path("/"): "never"}


def test_each_folder_has_its_name_whatever_holds_it() -> None:
    cause = Cause("environment", {"/home/me/x": ["/home/me/run/a", 7, None]}, "in '/home/me'")
    assert without_folders(cause, NAMES) == Cause("environment", {"~/x": ["DIR/a", 7, None]}, "in '~'")


def test_a_longer_name_is_another_folder_and_the_root_has_none() -> None:
    assert without_folders("/home/me.old /home/me-2 / /opt", NAMES) == "/home/me.old /home/me-2 / /opt"
