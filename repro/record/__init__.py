"""Records of a command: made, read, checked.

record               record.json, as typed structs
recording            one run of a command with the observer
injection, portable  what is loaded into its processes; what these computed with portable numerics
running              a command that is run and stopped, in the foreground or in the background
process, guard       its processes: started, ended, also if their starter was killed
typed_lines          a line that the observer wrote: parsed, checked and typed
lines, new_lines     the lines of each process, and those that come during a run
seal, signature      the running hash of the lines; the key that makes a record one's own
metrics, metric_values, metric_names  the scores that it logs, prints and writes
printed, metric_files  those in what it prints, and in files
outputs, arrays      files that the command writes; arrays that `--keep` holds
checkpoints          copies of the checkpoints that it writes, and their steps
written              the files in the run's own folder, and contents.json
contents             the values of a file by their keys: a reader for each format
trainings            where a training of a process begins, if there are several
provenance           the facts that can decide its bits
warnings             what is suspicious in a single record
"""
