"""Names of metrics: scores, numbers of steps, and what is no metric, such as a time."""

import re


def split(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")
NO_METRICS = split(
    "time times timestamp runtime walltime wall clock elapsed duration eta remaining second seconds sec secs ms minutes hours "
    "date day year speed fps throughput latency dt mfu tflops utilization util memory mem ram vram disk network system power "
    "gb mb kb gib mib bytes cpu cpus gpu gpus cores threads workers processes procs pid port host ip version rank device seed "
    "world line columns width qps tps wps code unknown warning"
)
"""Words of a name that make it a time, a rate, a part of the machine or a setting: such a number is no metric."""
UNITS = re.compile(
    r"(^|[^a-z])(it|its|s|tok|tokens|img|imgs|images|samples|steps|iters)/(s|sec|it|step|iter|batch)\b", re.I
)
SCORES = split(
    "loss losses logloss acc accuracy error err f1 auc auroc auprc ap map precision recall specificity sensitivity mae mse rmse mape "
    "bleu rouge meteor cider chrf perplexity ppl bpc bpb bpd score scores reward rew return returns iou miou dice jaccard nll elbo kl "
    "fid psnr ssim lpips wer cer r2 kappa mcc brier ece ndcg mrr hit hits correct entropy likelihood fitness objective correlation "
    "pearson spearman similarity silhouette gini deviance pass"
)
"""Words of a name that make it a score."""
STATISTICS = split(
    "metric metrics mean avg average std variance norm distance cost energy result value checksum prob probability logit "
    "confidence top"
)
"""Words of a name that may be that of a score, or of anything that was measured."""
ENDINGS = ("loss", "acc", "accuracy", "error", "score", "auc", "mse", "mae")
PLACES = split(
    "epoch epochs step steps iter iters iteration iterations batch round episode fold update updates timestep timesteps trial "
    "generation ep"
)
"""Last words of a name that say where in a run a number was logged."""


def words(name: str) -> list[str]:
    """The words of a name: `val_loss`, `valLoss` and `val/loss` have two."""
    return [word.lower() for word in WORD.findall(name)]


def is_place(name: str) -> bool:
    """True if a number of this name says where in a run it is: an epoch, a step."""
    parts = words(name)
    return bool(parts) and parts[-1] in PLACES and not may_be_score(name)


def is_metric(name: str) -> bool:
    """True unless a number of this name is a time, a rate, a setting or a place."""
    parts = words(name)
    return bool(parts) and not NO_METRICS.intersection(parts) and not UNITS.search(name) and not is_place(name)


def is_score(name: str) -> bool:
    """True if the name is that of a score: a loss, an accuracy, a reward."""
    parts = words(name)
    bare = [word.rstrip("0123456789") for word in parts]  # acc1, loss2
    scores = not SCORES.isdisjoint([*parts, *bare]) or any(word.endswith(ENDINGS) for word in bare)
    return scores and not NO_METRICS.intersection(parts) and not UNITS.search(name)


def may_be_score(name: str) -> bool:
    """True if the name is that of a score, or of a statistic such as a mean, which may be one."""
    parts = words(name)
    return is_score(name) or (
        not STATISTICS.isdisjoint(parts) and not NO_METRICS.intersection(parts) and not UNITS.search(name)
    )
