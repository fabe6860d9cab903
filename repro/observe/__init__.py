"""What is loaded into somebody else's training: it writes a line per optimizer step, and changes no bit.

The standard library alone, Python 3.9 and later, imports within the folder relative: it is mounted into any container,
where site/sitecustomize.py loads it. The module of a framework is imported once the program has imported the framework.
"""
