"""repro.machine.gpu, against a driver that is planted: which GPU is meant, why none is found, and what errors say."""

import logging
import sys
from importlib.machinery import ModuleSpec
from types import SimpleNamespace

import pytest

from repro.errors import ReproError, UsageError
from repro.machine import gpu

H100, H200 = "NVIDIA H100 80GB HBM3", "NVIDIA H200"


class NVMLError(Exception):
    pass


class Driver(SimpleNamespace):
    """The part of NVML that is called: two GPUs of 80 GiB, of which 79 are taken; the second one is in parts."""

    NVMLError = NVMLError
    missing, models, cuda = False, (H100, H200), 12020

    def nvmlInit(self) -> None:  # noqa: N802
        if self.missing:
            raise NVMLError("Driver Not Loaded")

    def __getattr__(self, name: str):
        answers = {
            "nvmlShutdown": lambda: None,
            "nvmlDeviceGetCount": lambda: len(self.models),
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetHandleByUUID": lambda name: name,
            "nvmlDeviceGetName": lambda handle: self.models[handle],
            "nvmlDeviceGetMigMode": lambda handle: (handle, handle),
            "nvmlSystemGetDriverVersion": lambda: "535.104.05",
            "nvmlSystemGetCudaDriverVersion": lambda: self.cuda,
            "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(used=79 << 30, total=80 << 30, of=handle),
            "nvmlDeviceGetTotalEnergyConsumption": lambda handle: {0: 1000, 1: 2000, "MIG-1-2": 3000}[handle],
        }
        return answers[name]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch):
    planted = Driver()
    monkeypatch.setitem(sys.modules, "pynvml", planted)
    monkeypatch.delenv(gpu.VISIBLE, raising=False)
    monkeypatch.setattr(gpu, "find_spec", lambda name: ModuleSpec(name, None))
    gpu.count.cache_clear()
    yield planted
    gpu.count.cache_clear()


def test_what_the_driver_shows(driver: Driver) -> None:
    first, second = gpu.described()
    assert first == {"model": H100, "driver": "535.104.05", "mig": False, "memory": 80 << 30}
    assert second["mig"] is True
    assert gpu.count() == 2


def test_without_a_driver_there_is_none(driver: Driver) -> None:
    driver.missing = True
    assert gpu.described() == []
    assert gpu.count() == 0


def test_none_is_there_where_all_are_hidden(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(gpu.VISIBLE, "")
    assert gpu.count() == 0


@pytest.mark.parametrize(("visible", "joules"), [("", 1), ("0", 1), ("1,0", 2), ("MIG-1-2", 3)])
def test_energy_is_that_of_the_gpu_in_use(
    visible: str, joules: float, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(gpu.VISIBLE, visible)
    assert gpu.joules() == joules


def test_a_gpu_is_used_where_it_is_wanted_and_there(driver: Driver) -> None:
    assert gpu.choose("auto", True, "jax", "13") and gpu.choose("gpu", True, "jax", "13")


def test_a_run_on_the_cpu_says_nothing_of_gpus(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    assert not gpu.choose("cpu", True, "jax", "13") and not gpu.choose("cpu", False, "jax", "13")
    assert not caplog.records


@pytest.mark.parametrize(
    ("visible", "cuda", "packages", "said"),
    [
        ("7", "13.2", True, "CUDA_VISIBLE_DEVICES='7' hides it, or names none"),
        (None, "13.2", True, "its driver 535.104.05 is for CUDA 12.2 or older, this build for 13.2; update it"),
        (None, "12.5.1", False, "this environment has no CUDA (requirements/install.sh --accelerator=cuda jax)"),
        (None, None, True, "this environment has no CUDA (requirements/install.sh --accelerator=cuda jax)"),
        (None, "12.5.1", True, "nvidia-smi may say why it cannot be used"),
    ],
)
def test_why_a_framework_finds_none(
    visible: str | None,
    cuda: str | None,
    packages: bool,
    said: str,
    driver: Driver,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if visible:
        monkeypatch.setenv(gpu.VISIBLE, visible)
    if not packages:
        monkeypatch.setattr(gpu, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"params.device=gpu: JAX finds no GPU, but there is an NVIDIA H100") as caught:
        gpu.choose("gpu", False, "jax", cuda)
    assert f"{said}; use auto or cpu" in str(caught.value)
    with caplog.at_level(logging.WARNING):
        assert not gpu.choose("auto", False, "jax", cuda)
    assert f"{said}; it trains on the CPU" in caplog.text


def test_a_machine_without_gpus_says_nothing_of_them(driver: Driver, caplog: pytest.LogCaptureFixture) -> None:
    driver.missing = True
    assert not gpu.choose("auto", False, "jax", "13")
    assert not caplog.records
    with pytest.raises(UsageError, match=r"^params.device=gpu: JAX finds no GPU on this machine; use auto or cpu$"):
        gpu.choose("gpu", False, "jax", "13")


# As the frameworks say it.
ERRORS = [
    ("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.10 GiB", "its memory is full"),
    ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 47040000 bytes.", "its memory is full"),
    ("{{function_node}} OOM when allocating tensor with shape[60000,28,28]", "its memory is full"),
    ("CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "its memory is full"),
    ("CUDA error: unspecified launch failure\nCompile with `TORCH_USE_CUDA_DSA`", "it failed or was lost"),
    ("INTERNAL: Failed to synchronize: CUDA_ERROR_ECC_UNCORRECTABLE", "it failed or was lost"),
]


@pytest.mark.parametrize(("error", "said"), ERRORS)
def test_an_error_of_the_gpu_is_one_line_with_a_remedy(error: str, said: str, driver: Driver) -> None:
    with pytest.raises(ReproError, match=f"^GPU: {said}") as caught, gpu.errors_explained("resume"):
        raise RuntimeError(error)
    assert str(caught.value).endswith("; resume") and "\n" not in str(caught.value)
    assert ("80896 of 81920 MiB are taken" in str(caught.value)) == ("full" in said)


def test_other_errors_stay_what_they_are(driver: Driver) -> None:
    with pytest.raises(ValueError, match="shapes"), gpu.errors_explained("resume"):
        raise ValueError("shapes do not match")
    with pytest.raises(ReproError, match=r"^the loss is nan$"), gpu.errors_explained("resume"):
        raise ReproError("the loss is nan")
    driver.missing = True
    gpu.count.cache_clear()
    with pytest.raises(RuntimeError, match="out of memory"), gpu.errors_explained("resume"):
        raise RuntimeError("out of memory")  # of a machine that has no GPU
