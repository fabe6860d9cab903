"""Code that starts in somebody else's process, before its first line.

The observer (repro/observe/), portable numerics, remedies, or all of them. README.md beside this file says how.

site/sitecustomize  the start, by Python itself
portable            portable numerics: switched on after the import of a framework, reported at the end
changes             seeds and clocks, with which a cause is tested
origins             sources of seeds: the time, the system's entropy
dates               later dates
draws               a generator of its own for each task of a thread
batches             an evaluation's last batch, kept; its batch normalization, by running statistics
marks               files that say what a change found to change
delays              waits in threads, workers and ranks
listings            folder listings, reversed or sorted
remedies            what `verify --cure` tries: sorted listings, the frameworks' deterministic modes
package             the package `repro` in a process that may have another one, or none
imports             the hook into `import`
"""
