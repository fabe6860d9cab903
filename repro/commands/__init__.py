"""The commands of `repro`, a file each.

| file | commands |
|---|---|
| `portable.py`, `record.py`, `compare.py`, `report.py` | what they are called |
| `verify.py` | `verify`, of a command of one's own; of the reference trainers, in `verify_trainers.py` |
| `train.py` | `pytorch`, `tensorflow`, `jax` |
| `download.py`, `sweep.py`, `benchmark.py` | of the reference trainers, too |

`commands.py` lists all of them, `parser.py` is the parser of one. `own_command.py` holds what `record` and `verify`
share, `workspace.py` what the commands of the reference trainers share.

parser() of a file declares its options, run() does the work. At its top a file imports the standard library alone, and
run() imports the rest: so `--help` answers at once, and before any package is installed.
"""
