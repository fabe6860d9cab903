"""Stand-in for `docker`: runs a command of the host, which finds what is mounted where it is on the host."""

import os
import sys
from itertools import pairwise

words = sys.argv[1:]
if words[0] == "run":
    given = [(option, value) for option, value in pairwise(words) if option.startswith("--")]
    mounts = [
        dict(part.split("=") for part in value.split(",") if "=" in part)
        for option, value in given
        if option == "--mount"
    ]
    variables = dict(value.split("=", 1) for option, value in given if option == "--env")
    for name in variables:
        for mount in mounts:
            variables[name] = variables[name].replace(mount["target"], mount["source"])
    command = words[words.index("image") + 1 :]
    os.execvpe(command[0], command, os.environ | variables)
print("[]")
