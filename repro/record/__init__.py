"""The record of a command: made, read, checked.

record         what a record is: record.json, as typed structs
typed_lines    a line that the observer wrote: parsed, checked and typed
lines          the lines of each process
new_lines      those that come while a run goes on
seal           their running hash
recording      one run of a command with the observer
running        a command that is run and stopped, in the foreground or in the background
process        its processes: started, ended, and what they said
guard          ends a command whose starter was killed
outputs        the files that it writes
arrays         the arrays that `--keep` holds
signature      the key that makes a record one's own
provenance     the facts that can decide its bits
warnings       what is suspicious in a single record
"""
