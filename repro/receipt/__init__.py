"""Receipts: what a stranger can check of a training, and check again by doing parts of it.

merkle        the tree over the steps of a record: its root, its nodes, the first leaf that differs
statement     the in-toto statement about a record: SLSA provenance
signing       DSSE envelopes, signed with an SSH key
bundles       bundles of Sigstore, signed by an identity
receipt       a receipt: made, read, and held against the record that it is of
segments      the parts of a training between two checkpoints; which are drawn, and what may stay unseen
restoring     the files of a checkpoint, put where a command goes on from them
runs          runs of segments on this machine
audit         these runs, compared with the record
consent       what an audit runs is shown before, and is what the receipt is of
results       audit.json
dispute       two who each hold a record find the first step that differs, by messages
"""
