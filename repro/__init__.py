"""Evidence that a training gives the same bits again.

commands                                     what a user types: one file each
verify, record, compare, report, containers  the tool: runs of a command, and what they say
port                                         two frameworks side by side
receipt                                      what a stranger can check of a training
observe, plant, inject                       what is loaded into the processes of that command
trainers                                     the reference trainers
portable                                     portable numerics
machine                                      facts of the machine
structs, fingerprint, seeds, console         shared utilities
files, text, errors, frameworks              what these use
pytest_plugin                                the fixture `assert_reproducible`

Imports go one way, and the core imports no framework: docs/architecture.md.
"""

from repro.observe.watch import watch
from repro.seeds import set_seeds

__all__ = ["set_seeds", "watch"]
__version__ = "0.1.0"
