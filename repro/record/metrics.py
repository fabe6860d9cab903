"""Metrics that a program logs, prints or writes.

In the record's metrics.jsonl: a line for each value, those of one source in the order in which they came.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from repro.errors import ReproError
from repro.files import parsed, read_lines
from repro.record import metric_files, printed
from repro.record.lines import AGAIN, Process
from repro.record.metric_names import is_metric
from repro.record.metric_values import Metric
from repro.structs import Flaw, converted

FILE = "metrics.jsonl"
MOST = 200_000  # values of a run
LARGEST = 64 << 20  # bytes of what is printed
PRINTED = ("stdout", "stderr")


def logged(processes: Iterable[Process]) -> list[Metric]:
    """What processes handed to a library that logs, as the observer saw it; processes are counted, as their pids change."""
    with_metrics = [process for process in processes if process.metrics]
    result = []
    for number, process in enumerate(with_metrics, 1):
        source = f", process {number}" if len(with_metrics) > 1 else ""
        for line in process.metrics:
            at = "" if line.step is None else f"{line.unit} {line.step}"
            if is_metric(line.name):
                result.append(Metric(source=line.source + source, name=line.name, at=at, value=line.value))
    return result


def gathered(processes: Iterable[Process], texts: Mapping[str, bytes], files: Mapping[str, Path]) -> list[Metric]:
    """All metrics of a run: logged, then printed, then in files; `texts` are those that it printed, by source."""
    result = logged(processes)
    for source, text in texts.items():
        result += printed.metrics(source, text)
    for name, path in files.items():
        result += metric_files.metrics(name, path)
    return result[:MOST]


def write(folder: Path, metrics: Iterable[Metric]) -> str:
    """Writes the file, and returns its SHA-256."""
    content = "".join(f"{json.dumps(msgspec.to_builtins(metric))}\n" for metric in metrics).encode()
    (folder / FILE).write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def read(folder: Path, digest: str) -> list[Metric]:
    """The metrics of a record. ReproError if the file is not the one whose SHA-256 the record holds."""
    path, sha256, result = folder / FILE, hashlib.sha256(), []
    try:
        for line in read_lines(path):
            sha256.update(line)
            result.append(converted(parsed(line), Metric))
    except FileNotFoundError:
        raise ReproError(f"record: {folder} was cut off: no {FILE} in it; {AGAIN}") from None
    except OSError as error:
        raise ReproError(f"record: {path} cannot be read ({error.strerror}); {AGAIN}") from None
    except (Flaw, ValueError) as error:
        raise ReproError(f"record: {path}, line {len(result) + 1}: {error}; {AGAIN}") from None
    if sha256.hexdigest() != digest:
        raise ReproError(f"record: {path} was changed: the record holds another SHA-256 of it; {AGAIN}")
    return result
