"""Questions about any command."""

import os
import platform

from repro.machine import gpu
from repro.verify.caches import EMPTIED, LEFT
from repro.verify.questions import PLACE, PORTABLE_ONLY, REPEAT, Change, Question

OTHER_SEED = "1234567"
THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
    "PJRT_NPROC",
)
AVX512 = "AVX512F AVX512CD AVX512_KNL AVX512_KNM AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4"
"""Groups of instructions as NumPy names them, before version 2.4 and since."""
# Libraries that are set to use narrower vectors than the CPU has: PyTorch, oneDNN, MKL, OpenBLAS, XLA, NumPy, the C
# library; those names of instructions that a version does not know, it ignores.
AVX2 = (
    ("ATEN_CPU_CAPABILITY", "avx2"),
    ("ONEDNN_MAX_CPU_ISA", "AVX2"),
    ("MKL_ENABLE_INSTRUCTIONS", "AVX2"),
    ("OPENBLAS_CORETYPE", "Haswell"),
    ("XLA_FLAGS", "--xla_cpu_max_isa=AVX2"),
    ("MKL_CBWR", "AVX2"),
    ("NPY_DISABLE_CPU_FEATURES", AVX512),
    ("GLIBC_TUNABLES", "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512F_Usable"),
)
SSE4 = (
    ("ATEN_CPU_CAPABILITY", "default"),
    ("ONEDNN_MAX_CPU_ISA", "SSE41"),
    ("MKL_ENABLE_INSTRUCTIONS", "SSE4_2"),
    ("OPENBLAS_CORETYPE", "Nehalem"),
    ("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2"),
    ("MKL_CBWR", "COMPATIBLE"),
    ("NPY_DISABLE_CPU_FEATURES", f"AVX F16C XOP FMA4 FMA3 AVX2 X86_V3 {AVX512}"),
    (
        "GLIBC_TUNABLES",
        "glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-FMA4,-AVX512F,-AVX512VL,-AVX2_Usable,-FMA_Usable,-FMA4_Usable,-AVX512F_Usable",
    ),
)
UNCACHED = ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")
"""Small pieces of memory, which the C library would hand out again as they are, are filled, too."""
STRAY = (("COLUMNS", "37"), ("REPRO_STRAY", "stray" * 300))


def _one_core() -> str | None:
    return None if len(os.sched_getaffinity(0)) > 1 else "this machine, or its share for us, has one core"


def _no_gpu() -> str | None:
    return None if gpu.count() else "no NVIDIA GPU on this machine"


def _narrowest() -> str | None:
    possible = any(change.possible for change in NARROWER)
    return None if possible else "no narrower vector instructions are known for this CPU"


def no_fill() -> str | None:
    """The reason that fresh memory cannot be filled here."""
    if platform.libc_ver()[0] != "glibc":
        return "only the GNU C library fills fresh memory"
    preloaded = os.environ.get("LD_PRELOAD", "")
    return f"LD_PRELOAD={preloaded} has another malloc, which fills no memory" if "malloc" in preloaded else None


def _threads(count: int) -> Change:
    label = "1 thread" if count == 1 else f"{count} threads"
    return Change(label, tuple((name, str(count)) for name in THREADS))


NARROWER = (Change("AVX2", AVX2, narrowed_to="avx2"), Change("SSE4", SSE4, narrowed_to="sse4_2"))
HASH_SEED = Change("PYTHONHASHSEED=77", (("PYTHONHASHSEED", "77"),))
MOVED = Change(f"{HASH_SEED.label}, objects elsewhere", (*HASH_SEED.environment, ("REPRO_CHANGES", "objects=7")))
OBJECTS_DECIDE = "only where objects lie in memory was changed, so their order by address decides, as in a set of parameters or modules, or by id(); sort them by a name"
MEMORY = tuple(Change(f"MALLOC_PERTURB_={byte}", (("MALLOC_PERTURB_", byte), UNCACHED)) for byte in ("85", "170"))

SLOWED = Change("slowed", (("REPRO_DELAYS", "2"),))
SLOWED_OTHERWISE = Change("slowed with long and short delays swapped", (("REPRO_DELAYS", "-2"),))

COMMAND_QUESTIONS = (
    Question("restart", "Run again", (REPEAT,)),
    Question(
        "observed",
        "Without the observer",
        (Change("not observed", observed=False),),
        compared="outputs",
        meaning="the observer changes what the command writes; please report it",
    ),
    Question(
        "hash_seed",
        "Another hash seed",
        (Change("PYTHONHASHSEED=0", (("PYTHONHASHSEED", "0"),)), MOVED),
        meaning="only the hash seed of Python was changed, so the order of a set, or hash(), decides; sort the set",
    ),
    Question(
        "environment",
        "Another locale, time zone and user, stray variables",
        (Change("elsewhere", PLACE + STRAY),),
        meaning="only LANG, LC_ALL, TZ, USER, LOGNAME, COLUMNS and a stray variable were changed; one is read",
    ),
    Question(
        "threads",
        "Number of threads: 1, 4",
        (_threads(1), _threads(4)),
        promise=PORTABLE_ONLY,
        meaning="only the number of threads was changed: sums are split among threads",
    ),
    Question(
        "instruction_set",
        "Narrower vector instructions",
        NARROWER,
        promise=PORTABLE_ONLY,
        obstacle=_narrowest,
        meaning="only the vector instructions were limited: wider vectors split a sum into more parts",
    ),
    Question(
        "cores",
        "One core",
        (Change("1 core", cores=1),),
        promise=PORTABLE_ONLY,
        obstacle=_one_core,
        meaning="only the number of cores was changed: libraries size their thread pools by it",
    ),
    Question(
        "file_order",
        "Folders listed in reverse order",
        (Change("listings reversed", (("REPRO_LISTINGS", "reversed"),)),),
        compared="listed",
        meaning="only the order in which folders are listed was changed; sort what os.listdir or glob gives",
    ),
    Question(
        "memory",
        "Fresh memory filled with other bytes",
        MEMORY,
        slow=True,
        obstacle=no_fill,
        compared="filled",
    ),
    Question(
        "cold",
        "Caches emptied, and as that run left them",
        (EMPTIED, LEFT),
        slow=True,
        compared="cold",
        meaning="only caches were emptied, so what is in one decides",
    ),
    Question(
        "races",
        "Threads, workers and ranks slowed",
        (SLOWED, SLOWED_OTHERWISE),
        slow=True,
        compared="slowed",
        meaning="only threads, workers and ranks were slowed, so which of them comes first decides",
    ),
    Question(
        "time",
        "Another date, a faster clock",
        (
            Change("400 days later", (("REPRO_CHANGES", f"date={400 * 86400}"),), clock="+400d"),
            Change("a clock 4 times as fast", (("REPRO_CHANGES", "clock=4"),), clock="+0 x4"),
        ),
        slow=True,
        compared="clocked",
        meaning="only the clock was changed, so a date or a duration decides; train for a number of steps, and let no date choose a seed or data",
    ),
    Question(
        "resume",
        "Stopped by SIGTERM, resumed",
        (Change("stopped, resumed", course="stop", stops=(1 / 2,)),),
        needs="resume",
        compared="resumed",
    ),
    Question(
        "kill",
        "Killed by SIGKILL, resumed",
        (Change("killed, resumed", course="kill", stops=(2 / 3,), window=1 / 3),),
        needs="resume",
        compared="resumed",
    ),
    Question(
        "resume_twice",
        "Stopped, resumed, stopped, resumed",
        (Change("stopped, resumed twice", course="stop", stops=(1 / 3, 2 / 3)),),
        slow=True,
        needs="resume",
        compared="resumed",
    ),
    Question(
        "alone",
        "One of its trainings, alone",
        (Change("alone", course="alone"),),
        needs="alone",
        compared="alone",
    ),
    Question(
        "container",
        "In an image",
        (Change("in the image", runtime="image"),),
        promise=PORTABLE_ONLY,
        needs="image",
        meaning="only the image was changed: its Python, its C library and its packages differ",
    ),
    Question(
        "gpu",
        "Without the GPU",
        (Change("without the GPU", (("CUDA_VISIBLE_DEVICES", ""),)),),
        promise=PORTABLE_ONLY,
        obstacle=_no_gpu,
        meaning="only the GPU was hidden: a GPU adds in another order than a CPU",
    ),
    Question(
        "seed",
        "Control: another seed",
        (Change("another seed", seed=OTHER_SEED),),
        control=True,
        needs="seed_option",
        meaning="another seed, as it should",
        sameness="another seed changes nothing: the command does not use the option, or nothing depends on it",
    ),
)
"""Questions about any command, in the order in which they are asked."""
