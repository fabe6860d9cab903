"""Verification: will a training give the same bits again?

questions.py                 what a question declares: what is changed, compared and promised
verification.py              one call: each run that the questions need is made once
command.py, command_questions.py, command_runs.py     the user's command: its questions and runs
decision.py                  the answer to a question, by its runs and those that test why they differ
judgment.py, resumption.py   comparison of these runs; of a resumed one with the whole one
experiment.py                what a training that describes itself says of its run
machines.py                  the question across machines, answered from their results
baselines.py                 the two baseline runs
scores.py                    metrics that differ between them
causes.py, hypotheses.py     causes that further runs test, and how; dependence.py: of a resumed run
caches.py                    caches that a run finds empty, or as such a run left them
cure.py, remedies.py         `--cure`: remedies tried, and what each sets
alone.py, trainings.py       one of a command's trainings beside a command that does it alone
alone_parts.py               its outputs and metrics, as far as they can be told from other trainings'
vary.py, known_options.py    an option of the command as a question, also by a word
ranks.py                     samples and weights on another number of ranks
batch_sizes.py, rows.py      other batches in an evaluation; rows of result files, in any order
batch_causes.py              why its scores are others then
stops.py, windows.py         points at which a command is stopped, also within an accumulation window
power.py, checkpoint_copies.py  faults that are planted where a run went on, to see whether they are seen
checkpoints.py               files that it may resume from, once they are whole
coverage.py                  what a resumed run did not cover
trial.py                     a command, and the result of one of its runs
surroundings.py              what a change gives to a process, or to a container
answers.py                   an answer, as long as the call lasts
results.py, planted.py       results.json: its structs, and what contradicts itself
audits.py                    audit.json: a training that somebody else did again, in parts
timeline.py                  the course of a run: its processes, epochs and files over the steps
folders.py                   results without this machine's folders
"""
