"""The self-check of JAX's mode: prints the cases that differ, and what is said.

    python checks.py [liberties|MACHINE]

`liberties` is without the options of XLA, and MACHINE has those of another machine.
"""

import json
import sys

import jax
import numpy as np

import repro.portable.jax as portable
from repro.portable.modes.jax.dispatcher import checks, options

if "liberties" in sys.argv:
    vars(options).update(OPTIONS={}, LEFT_OUT=())
elif len(sys.argv) > 1:
    options.OPTIONS, options.LEFT_OUT = options.of(sys.argv[1])
portable.enable()
try:
    print(np.asarray(jax.numpy.ones(3) + 1).sum(), file=sys.stderr)
    said = ""
except Exception as error:
    said = str(error)
with checks.exactly():
    found = jax.jit(checks.computed)(*checks.inputs())
differ = [name for name in checks.CASES if checks.fingerprint(found[name]) != checks.published(checks.__file__)[name]]
print(json.dumps({"differ": differ, "said": said}))
