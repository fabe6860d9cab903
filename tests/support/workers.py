"""Workers: processes that compute operations, see operations_worker.py."""

import io
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from support.programs import ENVIRONMENT
from support.runs import PROGRAMS, ROOT, needs

WAYS = (
    "pytorch eager",
    "pytorch kernels",
    "jax eager",
    "jax compiled",
    "tensorflow eager",
    "tensorflow graph",
    "tensorflow compiled",
)
NONE = np.zeros(0, bool)


class Worker:
    def __init__(self, framework: str) -> None:
        self.framework = framework
        python = ROOT / ".venv" / framework / "bin" / "python"
        command = [str(python), "-s", "-P", str(PROGRAMS / "operations_worker.py"), framework]
        env = os.environ | ENVIRONMENT
        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def __call__(
        self,
        operation: str,
        options: dict[str, Any],
        arrays: list[np.ndarray | None],
        gradient: np.ndarray | None = None,
        mode: str = "eager",
        unrounded: bool = False,
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """The results and the gradients. RuntimeError with the worker's traceback where it fails."""
        request = {"operation": operation, "options": options, "mode": mode, "arrays": len(arrays)}
        request["unrounded"] = unrounded
        given = {f"array{i}": NONE if array is None else array for i, array in enumerate(arrays)}
        buffer = io.BytesIO()
        gradient = np.ones(1, np.float32) if gradient is None else gradient
        np.savez(buffer, request=np.array(json.dumps(request)), gradient=gradient, **given)  # type: ignore[arg-type]
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(len(buffer.getvalue()).to_bytes(8, "little") + buffer.getvalue())
        self.process.stdin.flush()
        answer = np.load(io.BytesIO(self.process.stdout.read(int.from_bytes(self.process.stdout.read(8), "little"))))
        if "error" in answer:
            raise RuntimeError(str(answer["error"]))
        results, gradients = (
            [answer[name] for name in answer.files if name.startswith(kind)] for kind in ("result", "gradient")
        )
        return results, gradients

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="session")
def ask() -> Iterator[Callable[..., Any]]:
    """Asks a framework's process, which is started when it is first asked, and answers all tests of a session."""
    started: dict[str, Worker] = {}

    def asked(way: str, *request, **more: Any):
        framework, mode = way.split()
        needs(framework)
        if framework not in started:
            started[framework] = Worker(framework)
        return started[framework](*request, **{"mode": mode} | more)

    yield asked
    for worker in started.values():
        worker.close()
