"""The facts of a training as an ML-BOM: a bill of materials of CycloneDX 1.7, in JSON.

The fingerprint is a property and not a hash of the component: a hash there is that of a file's bytes, and the fingerprint
is that of what a file holds. Equal results make equal bytes, so its time is that of the results.
"""

import datetime
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cyclonedx.model import Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.tool import ToolRepository
from cyclonedx.output.json import JsonV1Dot7
from packageurl import PackageURL

from repro import __version__
from repro.errors import UsageError
from repro.files import write_atomically
from repro.report.levels import Levels
from repro.report.published import DISTRIBUTION, facts, one_training

PYTHON = "python"


def write(path: Path, trainings: Sequence[Levels]) -> None:
    """Writes the bill of a model whose name is that of the file, up to its first dot. UsageError if the file exists."""
    if path.exists() or path.is_symlink():
        raise UsageError(f"report: --bom {path}: it already exists, and is left as it is; name another file")
    training = one_training(trainings, "--bom")
    write_atomically(path, bill(path.name.split(".")[0] or "model", training).encode() + b"\n")


def bill(name: str, training: Levels) -> str:
    """A bill of materials: a component of type `machine-learning-model`, and one for each package, with its version."""
    content = facts(training)
    versions = content.pop("versions", {})
    properties = [Property(name=f"repro:{key}", value=_text(value)) for key, value in content.items()]
    model = Component(name=name, type=ComponentType.MACHINE_LEARNING_MODEL, bom_ref="model", properties=properties)
    packages = [_package(package, version) for package, version in versions.items()]
    identity = uuid.uuid5(uuid.NAMESPACE_OID, f"{name} {content} {versions}")
    time = datetime.datetime.fromisoformat(training.date)
    tools = ToolRepository(components=[_package(DISTRIBUTION, __version__)])
    metadata = BomMetaData(component=model, timestamp=time, tools=tools)
    bom = Bom(components=packages, serial_number=identity, metadata=metadata)
    bom.register_dependency(model, packages)
    return str(JsonV1Dot7(bom).output_as_string(indent=2))


def _package(name: str, version: str) -> Component:
    """A component of the platform for Python itself, else of a library, with its name on the Python package index."""
    if name == PYTHON:
        return Component(name=name, version=version, type=ComponentType.PLATFORM, bom_ref=f"{name}@{version}")
    purl = PackageURL("pypi", name=name, version=version)
    return Component(name=name, version=version, purl=purl, bom_ref=str(purl))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
