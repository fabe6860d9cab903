"""Steps of four backward passes, without a framework: windows.py FOLDER EVERY PHASE [ONE].

A checkpoint is written after each pass whose number modulo EVERY is PHASE. After step ONE, a step has one pass.
"""

import os
import sys

from repro.observe import recorder, windows

folder, every, phase, *more = sys.argv[1:]
one = int(more[0]) if more else 100
recorder.active = recorder.Recorder(folder, 1)
windows.start("4")
passes = 0
for number in range(60):
    windows.wait(passes)
    passes += 1
    if passes == (1 if recorder.active.steps >= one else 4):
        recorder.active.steps, passes = recorder.active.steps + 1, 0
    if number % int(every) == int(phase):
        with open(f"{folder}/new", "w") as file:
            file.write(str(number))
        os.replace(f"{folder}/new", f"{folder}/checkpoint")
