"""Evidence that a training gives the same bits again.

run/          one training run of the reference trainers; native/ their fast layers, portable/ their portable numerics
inject/       what starts in somebody else's process; observe/, the observer there
containers/   commands that start a container
record/       what a record is: made, read, checked
compare/      the first divergence of two records, and why
verify/       questions, the runs that they need, the answers
benchmark/    how fast the reference trainers are
report/       what people look at: pages, tables
tasks/        one file for each command

Arrows go up this list only; the core imports no framework.
"""

from repro.observe.watch import watch
from repro.seeds import set_seeds

__all__ = ["set_seeds", "watch"]
__version__ = "0.1.0"
