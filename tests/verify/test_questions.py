"""What a question declares."""

import os
import platform
import subprocess
import sys

import pytest

from repro.verify import questions
from repro.verify.command_questions import COMMAND_QUESTIONS, MEMORY, no_fill


@pytest.mark.parametrize(
    ("widest", "labels"),
    [
        ("avx512f", ["AVX2", "SSE4"]),
        ("avx2", ["SSE4"]),
        ("avx", ["SSE4"]),
        ("sse4_2", []),
        ("asimd", []),
        (None, []),
    ],
)
def test_vector_instructions_are_limited_only_to_narrower_ones(
    widest: str | None, labels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(questions, "_instruction_set", lambda: widest)
    (question,) = [question for question in COMMAND_QUESTIONS if question.name == "instruction_set"]
    assert [change.label for change in question.possible_changes] == labels
    assert (question.obstacle() is None) == bool(labels)


@pytest.mark.skipif(no_fill() is not None, reason=str(no_fill()))
@pytest.mark.parametrize(("change", "byte"), [(MEMORY[0], 0xAA), (MEMORY[1], 0x55)])
def test_fresh_memory_is_filled_also_where_it_was_used_before(change: questions.Change, byte: int) -> None:
    code = """if True:
        from ctypes import CDLL, c_size_t, c_void_p, string_at
        c = CDLL(None); c.malloc.argtypes, c.malloc.restype, c.free.argtypes = [c_size_t], c_void_p, [c_void_p]
        for size in (24, 24, 5000, 10**7):
            place = c.malloc(size); print({*string_at(place, size)}); c.free(place)
    """
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | dict(change.environment), stdout=subprocess.PIPE, check=True
    )
    assert done.stdout.decode().split() == [f"{{{byte}}}"] * 4


def test_memory_is_filled_by_the_c_librarys_own_malloc_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/usr/lib/libtcmalloc.so.4")
    assert no_fill() == "LD_PRELOAD=/usr/lib/libtcmalloc.so.4 has another malloc, which fills no memory"
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert no_fill() == "only the GNU C library fills fresh memory"


def test_only_the_answers_of_a_file_are_shown_in_other_words() -> None:
    words = {answer: questions.shown(answer) for answer in ("same", "differs", "cannot tell", "not asked")}
    assert words == {"same": "same", "differs": "differs", "cannot tell": "inconclusive", "not asked": "skipped"}
