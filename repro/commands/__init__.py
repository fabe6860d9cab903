"""The commands of `repro`, a file each.

record, verify, compare, report, portable  for a command of the user's own
verify_trainers                            `verify` for the reference trainers
train, download, sweep, benchmark          for the reference trainers; `train` has `pytorch`, `tensorflow`, `jax`
job                                        a training as a Hydra job
commands, parser                           all commands; the parser of one
command_options                                what `record` and `verify` share
project                                    [tool.repro] of pyproject.toml: a command, and options
workspace                                  what commands of the reference trainers share

parser() of a file declares its options, run() does the work. README.md says why a file imports the standard library only.
"""
