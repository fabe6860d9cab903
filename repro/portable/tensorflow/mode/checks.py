"""The mode's self-check: small cases and their fingerprints."""


def check() -> None:
    """UsageError if a case has other bits on this processor; the mode must be on."""
