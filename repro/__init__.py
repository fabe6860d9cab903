"""repro: train one small network in three frameworks, and prove that you get it again.

The core imports no framework. Data flows one way:
train.yaml -> config -> data, randomness -> trainer -> state -> fingerprint, checkpoint, metrics.
"""

from repro.observe.watch import watch
from repro.seeds import set_seeds

__all__ = ["set_seeds", "watch"]
__version__ = "0.1.0"
