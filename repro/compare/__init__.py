"""The first divergence of two records, and why.

comparison                    all that is known of it, as `compare` shows it
difference                    step, channel and names of the first divergence
metrics                       the first value of a metric that differs
alignment, pairs, names       which steps, optimizers and arrays of two records belong together
layouts                       trainings that are split among ranks in different ways
files, incidental             files of two runs by what they hold; times, paths and ids, which are no result
incomplete                    why records without a difference are not called the same
reasons                       why: a list of named rules
facts                         recorded facts that differ, likely causes first
distance                      how far apart the arrays are, and how that grows
live, against                 a run compared with a record while it runs, and at its end
rerun_command                 a recorded run again, as it was
operations                    `--narrow`: the operation where the difference begins
bisect, smallest              `--bisect`: the smallest set of facts that makes the difference
differing, settable           facts that differ, and how each is set
variables, environments, commits  variables, packages and commits that are set
"""
