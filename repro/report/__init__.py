"""Reports: results for people.

report.py         the files of the task `report`: a page, Markdown and JSON
contents.py       report.json, as structs; findings.py  builds it from the results of one machine or several
levels.py         how far a training is reproducible, in six levels; level_questions.py  what decides each
badge.py          the level as a picture, for a README
published.py      the facts of one training that are published: model_card.py, bom.py
page.py           the page; templates/ hold its HTML, charts.py draws its pictures
timeline.py       the picture of a command's runs over their steps
tables.py         the same as Markdown and in the terminal; markdown.py escapes
answers.py        a command's answers in the terminal; cures.py  what `--cure` did
comparison.py     what `compare` says of two records
port.py           what `compare --port` says; port_page.py  its page, two columns
speed_tables.py   a benchmark as tables; speed_page.py is its part of the page
against_table.py  a benchmark beside an older one
sweep_report.py   a sweep, in the terminal, as Markdown and as JSON
"""
