"""A task run in this process; then the modules it loaded, and whether Python looks for garbage, as JSON."""

import gc
import json
import sys

from repro.__main__ import main

assert main(sys.argv[1:]) == 0
print(json.dumps({"modules": sorted(sys.modules), "garbage": gc.isenabled()}))
