"""What a file may hold that is no result of a training: times, paths, ids, states of generators; and shapes of weights."""

import re
from pathlib import PurePath

A_TIME, A_NUMBER, A_TEXT = "a time, a speed or an id", "a number", "a text"
TIMES = {
    *("time", "times", "timing", "timings", "timestamp", "timestamps", "date", "dates", "datetime", "clock", "wall"),
    *("walltime", "second", "seconds", "sec", "secs", "ms", "us", "ns", "minute", "minutes", "hour", "hours"),
    *("elapsed", "duration", "durations", "runtime", "latency", "eta", "started", "start", "finished", "ended"),
    *("created", "saved", "modified", "updated", "speed", "throughput", "fps", "sps", "tps", "its", "nsecs", "nanos"),
    *("memory", "mem", "rss", "vram", "pid", "ppid", "host", "hostname", "port", "uptime", "cpu", "gpu", "mtime"),
    *("flops", "mfu", "energy", "power", "temperature", "version", "id", "uuid", "uid"),
}
ARRAYS_OF_TIMES = TIMES & {"times", "timestamps", "timestamp", "elapsed", "durations", "seconds", "walltime", "runtime"}
BESIDE_TIME = {
    "time",
    "step",
    "steps",
    "epoch",
    "epochs",
    "batch",
    "train",
    "eval",
    "wall",
    "iter",
    "iteration",
    "data",
}
RESULTS = {
    *("loss", "losses", "acc", "accuracy", "error", "err", "score", "scores", "f1", "auc", "mse", "rmse", "mae", "r2"),
    *("precision", "recall", "perplexity", "ppl", "bleu", "rouge", "wer", "cer", "iou", "map", "dice", "metric"),
    *("metrics", "val", "valid", "validation", "test", "eval", "reward", "return", "nll", "elbo", "kl", "correct"),
    *("weight", "weights", "bias", "biases", "param", "params", "parameters", "coef", "coefs", "kernel", "ema"),
    *("average", "averages", "mean", "var", "std", "norm", "grad", "prediction", "predictions", "logits", "w", "b"),
    *("model", "state", "result", "results", "checkpoint", "output", "outputs", "lr", "scale", "top1", "top5", "best"),
    *("theta", "moving", "running", "intercept", "embedding", "embeddings"),
}
GENERATORS = re.compile(
    r"(^|[._])(rngs?|mt19937|bit_generator)([._]|$)|rng_?states?|random_?states?|generator_?states?|sampler_?states?"
)
WEIGHTS = re.compile(r"array (b?float\d+|[BF]+\d+)\w*\[\d+,")  # also as safetensors names types
STATES = re.compile(r"uint8\[(5056|16|5048)\]|uint32\[624\]")  # generators of PyTorch on CPU and CUDA, and of NumPy
MODELS = {
    *(".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".npz", ".npy", ".h5", ".hdf5", ".keras", ".msgpack", ".onnx"),
    *(".joblib", ".pkl", ".pickle", ".ubj", ".model", ".tflite", ".weights", ".raw", ".f32", ".index", ".gguf"),
}
"""Ends of names of files that hold what was trained, also where their format is not read."""
SHARD = re.compile(r"\.data-\d+-of-\d+$|(^|/)(c/)?\d+([./]\d+)*$")
"""Names of parts of a model: of TensorFlow's checkpoints, and chunks of an array in zarr."""


def words(key: str) -> list[str]:
    """The words of a key, in small letters: `evalRuntime_s.0` has eval, runtime, s, 0."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+\d*|[A-Z]+(?![a-z])|\d+", key)]


def named(key: str, file: str) -> str:
    """The key, or with the name of its file where it has no letter, as of numbers in a list."""
    return key if re.search("[a-zA-Z]", key) else f"{PurePath(file).stem}.{key}"


def set_aside(key: str, ours: str | None, theirs: str | None) -> str | None:
    """The reason that a value which differs is no result of the training; None where it is one."""
    texts = [text for text in (ours, theirs) if text is not None]
    kind, _, _ = texts[0].partition(" ")
    if kind == "array":
        return _array_aside(key, [text.partition(" ")[2] for text in texts])
    if kind == "number":
        return _number_aside(key, texts)
    if kind == "bytes" and holds_model(key):
        return None
    return {"text": A_TEXT}.get(kind, "bytes")


def _array_aside(key: str, texts: list[str]) -> str | None:
    types = {text.partition(" ")[0] for text in texts}
    whole = all("int" in text for text in types)
    if whole and (GENERATORS.search(key.lower()) or any(map(STATES.fullmatch, types))):
        return "the state of a generator"
    leaf = words(key.rpartition(".")[2])
    if {*leaf} & ARRAYS_OF_TIMES or ("time" in leaf and {*leaf} <= BESIDE_TIME):
        return A_TIME
    return None


def _number_aside(key: str, texts: list[str]) -> str | None:
    own = {*words(key)}
    if own & TIMES or all(map(_is_time, texts)):
        return A_TIME
    if GENERATORS.search(key.lower()):
        return "the state of a generator"
    return None if own & RESULTS else A_NUMBER


def _is_time(text: str) -> bool:
    """True for a number that is a time since 1970 in seconds, or in thousandths, millionths or billionths of one."""
    try:
        number = float(text.partition(" ")[2])
    except ValueError:
        return False
    return any(1e9 <= number / unit < 2.5e9 for unit in (1, 1e3, 1e6, 1e9))


def weights(keys: dict[str, str]) -> dict[str, str]:
    """The arrays of two axes or more of floating-point numbers, by their keys: their types, shapes and hashes."""
    return {key: value for key, value in keys.items() if WEIGHTS.match(value)}


def kind(value: str) -> str:
    """The type and the shape of an array."""
    return value.rpartition(" ")[0]


def holds_model(name: str) -> bool:
    """True if a file has the name of one that holds what was trained."""
    return any(name.endswith(suffix) for suffix in MODELS) or bool(SHARD.search(name))


def holds_results(name: str, keys: dict[str, str] | None) -> bool:
    """True if a file holds arrays, or numbers that are called as results are."""
    if keys is None:
        return holds_model(name)
    return any(
        value.startswith("array ") or (value.startswith("number ") and bool({*words(key)} & RESULTS))
        for key, value in keys.items()
    )


def unread(name: str) -> str:
    """The reason that a file which differs is set aside though nothing is known of what it holds."""
    if "tfevents" in name:
        return "an event file, which holds times"
    return "a log" if name.endswith((".log", ".txt", ".out", ".err")) else "a format that is not read"
