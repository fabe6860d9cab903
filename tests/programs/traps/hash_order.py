"""The order of a set of strings; with an argument, after the script has set PYTHONHASHSEED for itself."""

import json
import os
import sys

if sys.argv[1:]:
    os.environ["PYTHONHASHSEED"] = sys.argv[1]
print(json.dumps(list({"shirt", "trouser", "pullover", "dress", "coat", "sandal", "sneaker", "bag", "boot", "hat"})))
