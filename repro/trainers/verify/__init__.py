"""The reference trainers, verified: commands whose runs say themselves what they trained.

questions   declarations: which question changes which parameter, and what is promised
runs        the command line of a run, on the host, emulated or in a container; how it resumes, what it leaves
subject     a framework in one arithmetic, or all of them, as a subject of repro.verify
recorded    the folder of a run, read as a record and compared
narrow      `compare --narrow`: the steps in which two runs diverge, again
"""
