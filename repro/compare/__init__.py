"""The first divergence of two records, and why.

comparison     all that is known of it, as `compare` shows it
difference     step, channel and names of the first divergence
incomplete     why records without a difference are not called the same
reasons        why: a list of named rules
facts          recorded facts that differ, likely causes first
distance       how far the arrays are apart, and how that grows
rerun_command, variables, operations       `--narrow`: reruns, and the operation where it begins
"""
