"""Folder listings in reverse order, in somebody else's process; sorted ones are a remedy: test_remedies.py."""

import os
import subprocess
import sys
from pathlib import Path

from repro.inject.listings import LISTED
from support.observed import SITE


def listed(code: str, folder: Path) -> str:
    """What this code prints where listings are reversed."""
    path = os.pathsep.join([str(SITE), str(folder / "mine")])
    (folder / "record" / "steps").mkdir(parents=True)
    asked = {"PYTHONPATH": path, "REPRO_LISTINGS": "reversed", "REPRO_OBSERVE": str(folder / "record")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_listings_come_in_the_reverse_order_and_are_logged(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sitecustomize.py").write_text("print('mine')")
    for name in ("a", "b", "c"):
        (tmp_path / "data" / name).mkdir(parents=True)
    code = """if True:
        import os, glob, pathlib, shutil
        with os.scandir("data") as entries: print([e.name for e in entries])
        print(os.listdir("data"), [n for _, names, _ in os.walk("data") for n in names],
              [p.name for p in pathlib.Path("data").iterdir()], [os.path.basename(n) for n in glob.glob("data/*")])
        shutil.copytree("data", "copy"); shutil.rmtree("copy"); os.listdir(os.open("data", os.O_RDONLY)); os.listdir()
        os.listdir(os.path.dirname(os.__file__))
    """
    mine, first, others = listed(code, tmp_path).splitlines()
    straight = [entry.name for entry in os.scandir(tmp_path / "data")]
    assert (mine, first) == ("mine", str(straight[::-1]))  # the user's own is loaded, too
    assert others == " ".join([first] * 4)
    log = (tmp_path / "record" / "steps" / LISTED).read_text().splitlines()
    assert f"{tmp_path.resolve() / 'data'}/" in log and len(log) == len({*log})
    assert not [line for line in log if line.startswith(os.path.realpath(sys.base_prefix))]
