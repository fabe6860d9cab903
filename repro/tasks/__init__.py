"""The tasks of the command line, a file each: its own words, and what it prints."""
