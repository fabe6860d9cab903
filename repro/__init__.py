"""Evidence that a training gives the same bits again.

portable/     portable numerics
machine/      facts of the machine
inject/       what starts in somebody else's process; observe/, the observer there
containers/   commands that start a container
record/       what a record is: made, read, checked
compare/      the first divergence of two records, and why
verify/       questions, the runs that they need, the answers
trainers/     the reference trainers: one run, how they are verified, how fast they are
report/       what people look at: pages, tables
commands/     one file for each command

Arrows go up this list only; the core imports no framework.
"""

from repro.observe.watch import watch
from repro.seeds import set_seeds

__all__ = ["set_seeds", "watch"]
__version__ = "0.1.0"
