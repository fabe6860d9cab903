"""The pairs of programs, and what is true of each.

A pair is run twice: as it stands, where both programs do the same, and with a fault in one of them. The sound pair is as
important: a tool that finds faults must be silent about the look-alike.
"""

from dataclasses import dataclass

ENVIRONMENTS = {"pytorch": "pytorch", "keras": "tensorflow"} | dict.fromkeys(
    ("nnx", "linen", "equinox", "haiku", "optax", "jax"), "jax"
)
"""The environment of a program, by the last word of its name."""


@dataclass(frozen=True)
class Pair:
    """Two programs that do the same."""

    name: str
    programs: tuple[str, str]
    """Paths without `.py`, from this folder; or reference trainers."""
    data: str = ""
    """The file that both read, of those that data.py writes."""
    options: str = ""
    """Words for both programs."""
    drawn: bool = False
    """Each draws its own initial weights: equal is only what they are drawn from."""
    note: str = ""
    """What the two were given so that they are the same."""


@dataclass(frozen=True)
class Fault(Pair):
    """A pair, and a fault that `--fault NAME` plants into one of its programs."""

    faulty: int = 0
    """Which of the two programs has the fault: 0 or 1."""
    quantity: str = ""
    """Pattern of where the two first do not agree: batch, initial weights, a module's name, loss, optimizer, weights, buffers."""
    cause: str = ""
    """Pattern of the words that name the fault."""
    source: str = ""
    """The public report that a fault was rebuilt from."""


TRAINER = "mnist_"
"""What the names of the reference trainers begin with, which are no files of this folder."""


def planted(name: str, programs: tuple[str, str], faulty: int, quantity: str, cause: str, options: str = "") -> Fault:
    model = programs[0].partition("_")[0]
    paths = f"planted/{programs[0]}", f"planted/{programs[1]}"
    return Fault(name, paths, model, options, name == "initializer", faulty=faulty, quantity=quantity, cause=cause)


CNN = "cnn_pytorch", "cnn_nnx", "cnn_keras"
MLP = "mlp_pytorch", "mlp_linen", "mlp_keras", "mlp_equinox", "mlp_haiku"
TRANSFORMER = "transformer_pytorch", "transformer_nnx", "transformer_keras"

FAULTS = (
    # PyTorch and JAX
    planted("padding", (CNN[0], CNN[1]), 1, r"\bconv2\b", r"pads 1 before and 1 after .* in A, 0 before and 1 after"),
    planted("variance", (CNN[0], CNN[1]), 0, "buffers", r"n - 1 in A, n in B"),
    planted("initializer", (MLP[0], MLP[1]), 1, "initial weights", r"fan_(in|out)", "--own-weights"),
    planted("correction", (MLP[0], MLP[3]), 1, "optimizer|weights", r"B does not correct the bias", "--optimizer adam"),
    planted("decay", (MLP[0], MLP[3]), 0, "optimizer|weights", r"coupled and decoupled", "--optimizer adamw"),
    planted(
        "dropout",
        (MLP[0], MLP[4]),
        1,
        r"\bdropout\b|after dense1",
        r"both drop, the rest is times 1.333 in A, times 1 in B",
    ),
    planted(
        "warmup",
        (MLP[0], MLP[1]),
        1,
        "optimizer|weights",
        r"changes no weight in B: its rate is 0",
        "--optimizer warmup",
    ),
    planted("gelu", (TRANSFORMER[0], TRANSFORMER[1]), 1, r"\bblocks\.0\.mlp\b", r"gelu by erf in A, gelu by tanh in B"),
    planted(
        "rotary",
        (TRANSFORMER[0], TRANSFORMER[1]),
        1,
        r"\bblocks\.0\.attention\b",
        r"two halves in A, in pairs of neighbours in B",
    ),
    planted("softmax", (TRANSFORMER[0], TRANSFORMER[1]), 0, r"\bblocks\.0\.attention\b", r"bfloat16"),
    # PyTorch and Keras
    planted("momentum", (CNN[0], CNN[2]), 1, "buffers", r"one momentum is 1 minus the other"),
    planted("pooling", (CNN[0], CNN[2]), 0, r"\bpool\b", r"the average with the padding"),
    planted(
        "adam_epsilon", (MLP[0], MLP[2]), 1, "optimizer|weights", r"before the bias correction in B", "--optimizer adam"
    ),
    planted("smoothing", (MLP[0], MLP[2]), 1, "loss", r"smoothed by 0.1 in A, the mean of the cross entropy in B"),
    planted("norm_epsilon", (TRANSFORMER[0], TRANSFORMER[2]), 0, r"\bblocks\.0\.norm1\b", r"outside of the root in A"),
    planted("gates", ("lstm_pytorch", "lstm_keras"), 1, r"\blstm\b", r"gate of .* has the values of"),
    planted("corners", ("resize_pytorch", "resize_keras"), 0, r"\bresize\b", r"aligned corners.* in A"),
    # Keras and JAX
    planted("normalization", (CNN[2], CNN[1]), 1, "batch", r"another normalization"),
    planted("order", (MLP[2], MLP[1]), 1, "batch", r"another order"),
    planted("sum", (MLP[2], MLP[1]), 0, "loss", r"the sum of the cross entropy"),
    planted(
        "clip_value", (MLP[2], MLP[1]), 1, "optimizer|weights", r"cut off at 0.05 each in B", "--optimizer clipped"
    ),
    planted(
        "clip_layers",
        (MLP[2], MLP[4]),
        0,
        "optimizer|weights",
        r"for each weight in A, scaled to a norm of 0.5 of all together in B",
        "--optimizer clipped",
    ),
    planted("masked_mean", (TRANSFORMER[2], TRANSFORMER[1]), 0, "loss", r"with 0 for what the mask leaves out in A"),
    planted(
        "norm_place", (TRANSFORMER[2], TRANSFORMER[1]), 0, r"\bblock0\b", r"the norm .* comes before .* after its sum"
    ),
)

REPORTED = (
    Fault(
        "flax963",
        ("public/flax963_pytorch", "public/flax963_linen"),
        "stem",
        faulty=1,
        quantity=r"\bconv1\b",
        cause=r"pads 3 before and 3 after .* in A, 2 before and 3 after",
        source="google/flax issue 963",
    ),
    Fault(
        "flax3125",
        ("public/flax3125_pytorch", "public/flax3125_linen"),
        "sentences",
        drawn=True,
        faulty=1,
        quantity="initial weights",
        cause=r"is drawn with a deviation of",
        source="google/flax issue 3125",
    ),
    Fault(
        "keras15915",
        ("public/keras15915_pytorch", "public/keras15915_keras"),
        "gru",
        faulty=1,
        quantity=r"\bgru\b",
        cause=r"gate",
        source="keras-team/keras issue 15915",
    ),
)
"""Faults of public reports, rebuilt."""

SMALL_EPSILON = "epsilon, which the two add at different places, is too small to be seen"


def optimizers(library: str, names: str) -> list[Pair]:
    programs = "sound/optimizers_pytorch", f"sound/optimizers_{library}"
    return [
        Pair(f"{library}_{name}", programs, "mlp", f"--optimizer {name}", note=SMALL_EPSILON) for name in names.split()
    ]


SOUND = (
    Pair("trainers", ("mnist_pytorch", "mnist_jax"), options="params.numerics=deterministic"),
    Pair(
        "trainers_portable",
        ("mnist_jax", "mnist_tensorflow"),
        options="params.numerics=portable",
        note="weights after the last step alone are seen; they have the same bits",
    ),
    Pair("gpt2", ("sound/gpt2_pytorch", "sound/gpt2_nnx"), "gpt2"),
    Pair("bert", ("sound/bert_pytorch", "sound/bert_keras"), "bert", note="GELU by tanh, as KerasHub has it"),
    Pair(
        "mobilenet",
        ("sound/mobilenet_pytorch", "sound/mobilenet_keras"),
        "mobilenet",
        note="timm with padding SAME and an epsilon of 0.001; frozen batch norms",
    ),
    Pair("lstm", ("planted/lstm_pytorch", "sound/lstm_linen"), "lstm", note="PyTorch's second bias stays zero"),
    Pair("equinox", ("planted/mlp_pytorch", "planted/mlp_equinox"), "mlp"),
    Pair("haiku", ("planted/mlp_pytorch", "planted/mlp_haiku"), "mlp"),
    *optimizers("optax", "sgd momentum nesterov adam adamw rmsprop centered adagrad adadelta adamax"),
    *optimizers("keras", "sgd momentum nesterov adam adamw rmsprop nadam adagrad adadelta adamax"),
)
"""Ten real pairs without a fault; two of them are of ten optimizers each."""
