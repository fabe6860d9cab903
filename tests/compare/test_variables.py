"""Variables that a rerun takes from a record: what steers numerics, and can do nothing else."""

import pytest

from repro.compare import variables


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("OMP_NUM_THREADS", "4"), ("OMP_PLACES", "{0:2},{2}"), ("MKL_CBWR", "AVX2,STRICT"), ("PYTHONHASHSEED", "0")),
        *(("CUBLAS_WORKSPACE_CONFIG", ":4096:8"), ("CUDA_VISIBLE_DEVICES", "GPU-8932f937-d72c")),
        ("XLA_FLAGS", "--xla_allow_excess_precision=false --xla_force_host_platform_device_count=2"),
    ],
)
def test_what_steers_numerics_is_taken(name: str, value: str) -> None:
    assert variables.taken({name: value}) == {name: value} and variables.left_out({name: value}, {}) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("PATH", "/x"),
            ("LD_PRELOAD", "x.so"),
            ("LD_LIBRARY_PATH", "/x"),
            ("BASH_ENV", "x"),
            ("GLIBC_TUNABLES", "x"),
        ),
        *(("PYTHONPATH", "/x"), ("PYTHONSTARTUP", "x"), ("PYTHONWARNINGS", "error::x.Y"), ("PYTHONHOME", "/x")),
        *(("OMP_TOOL_LIBRARIES", "x.so"), ("CUDA_INJECTION64_PATH", "x.so"), ("NCCL_NET_PLUGIN", "x")),
        *(("NCCL_DEBUG_FILE", "x"), ("MKL_VERBOSE_OUTPUT_FILE", "x"), ("ONEDNN_JIT_DUMP", "1"), ("KERAS_HOME", "x")),
        *(("TORCH_EXTENSIONS_DIR", "x"), ("JAX_COMPILATION_CACHE_DIR", "x"), ("TF_PLUGGABLE_DEVICE_LIBRARY_PATH", "x")),
        *(("OMP_NUM_THREADS", "/etc/passwd"), ("OMP_SCHEDULE", "${oc.env:SECRET}"), ("MKL_CBWR", "a\nb")),
        *(("XLA_FLAGS", "flags.txt"), ("XLA_FLAGS", "--xla_dump_to=x"), ("XLA_FLAGS", "--flagfile=x")),
        ("XLA_FLAGS", "--xla_gpu_deterministic_ops=true --xla_gpu_cuda_data_dir=x"),
        ("XLA_FLAGS", "--xla_cpu_max_isa=/x"),
    ],
)
def test_what_can_do_more_is_not(name: str, value: str) -> None:
    assert variables.taken({name: value}) == {} and variables.left_out({name: value}, {}) == [name]


def test_what_is_here_as_it_was_is_not_missing() -> None:
    assert variables.left_out({"PYTHONPATH": "src"}, {"PYTHONPATH": "src"}) == []


def test_what_a_record_decides_is_not_kept_from_here() -> None:
    assert variables.without({"PATH": "/bin", "OMP_NUM_THREADS": "4"}) == {"PATH": "/bin"}
