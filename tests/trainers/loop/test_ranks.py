"""Ranks: who a process is, whose part of a batch is whose, that all agree, and what is said when something is wrong."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from repro import files
from repro.errors import ReproError, UsageError
from repro.portable.definitions.ranks import SINGLE_PROCESS, packed
from repro.trainers.loop import launch, ranks
from repro.trainers.loop.ranks import RankInfo
from support.runs import HANG

pytestmark = pytest.mark.xdist_group("ports")

TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "node1", "MASTER_PORT": "4000"}
SLURM = {
    "SLURM_PROCID": "1",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_LOCALID": "1",
    "SLURM_JOB_ID": "5000",
    "SLURM_STEP_ID": "0",
}


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, str]], None]:
    """A function that sets what a launcher says, and nothing else."""

    def say(variables: dict[str, str]) -> None:
        for name in (*TORCHRUN, *SLURM, "REPRO_HOSTS", "TORCHELASTIC_USE_AGENT_STORE", "CUDA_VISIBLE_DEVICES"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return say


class TestRankInfo:
    def test_without_a_launcher_there_is_none(self, says) -> None:
        says({})
        assert ranks.rank_from_environment() is None

    def test_of_torchrun(self, says) -> None:
        says(TORCHRUN)
        assert ranks.rank_from_environment() == RankInfo(3, 4, ("node1",), 4000, 1)

    def test_of_srun_on_two_nodes(self, says) -> None:
        says(SLURM)
        result = ranks.rank_from_environment()
        assert result == RankInfo(1, 4, ("n1", "n2"), 61440 + 5000 % 4096, 1)
        assert [result.host(rank) for rank in range(4)] == ["n1", "n1", "n2", "n2"]

    def test_of_srun_on_one_node_meets_on_loopback(self, says) -> None:
        says(SLURM | {"SLURM_STEP_NODELIST": "login", "MASTER_PORT": "7"})
        assert ranks.rank_from_environment() == RankInfo(1, 4, ("127.0.0.1",), 7, 1)

    def test_one_task_of_srun_is_alone(self, says) -> None:
        says(SLURM | {"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"})
        assert ranks.rank_from_environment() is None

    def test_a_batch_script_is_no_task(self, says) -> None:
        says({"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_JOB_ID": "5"})
        assert ranks.rank_from_environment() is None

    def test_hosts_in_order(self, says) -> None:
        says(TORCHRUN | {"REPRO_HOSTS": "a,b"})
        result = ranks.rank_from_environment()
        assert result and [result.host(rank) for rank in range(4)] == ["a", "a", "b", "b"]

    @pytest.mark.parametrize(
        ("changed", "parts"),
        [
            ({"RANK": "4"}, ("rank 4 of 4",)),
            ({"RANK": "one"}, ("RANK=one", "number")),
            ({"MASTER_PORT": ""}, ("MASTER_PORT", "params.ranks=N")),
            ({"REPRO_HOSTS": "a,b,c"}, ("a,b,c", "equally many")),
        ],
    )
    def test_what_a_launcher_may_not_say(self, says, changed: dict[str, str], parts: tuple[str, ...]) -> None:
        says(TORCHRUN | changed)
        with pytest.raises(UsageError) as refused:
            ranks.rank_from_environment()
        assert all(part in str(refused.value) for part in parts)

    def test_the_launcher_decides_the_number(self) -> None:
        rank_info = RankInfo(0, 4, ("a",), 1)
        assert ranks.size(rank_info, 1) == ranks.size(rank_info, 4) == 4
        with pytest.raises(UsageError, match=r"params.ranks=2: the launcher started 4"):
            ranks.size(rank_info, 2)

    def test_variables_come_back(self, says) -> None:
        rank_info = RankInfo(3, 4, ("node1", "node2"), 4000, 1)
        says(rank_info.variables())
        assert ranks.rank_from_environment() == rank_info


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        ("login", ["login"]),
        ("a,b", ["a", "b"]),
        ("gpu[01-03,7],login", ["gpu01", "gpu02", "gpu03", "gpu7", "login"]),
        ("n[9-11].lab", ["n9.lab", "n10.lab", "n11.lab"]),
        ("cpu-a[1,3],cpu-b", ["cpu-a1", "cpu-a3", "cpu-b"]),
    ],
)
def test_a_list_of_nodes(nodes: str, names: list[str]) -> None:
    assert ranks.expand(nodes) == names


class TestOwnGpu:
    @pytest.mark.parametrize(
        ("visible", "there", "local_rank", "own"),
        [(None, 4, 2, "2"), ("5,MIG-a", 8, 1, "MIG-a"), (None, 0, 0, None), ("0", 1, 1, None)],
    )
    def test_each_rank_of_a_machine_sees_one(
        self, says, visible: str | None, there: int, local_rank: int, own: str | None
    ) -> None:
        says({"CUDA_VISIBLE_DEVICES": visible} if visible else {})
        expected = {"CUDA_VISIBLE_DEVICES": own} if own else {}
        assert ranks.own_gpu(RankInfo(local_rank, 8, ("a",), 1, local_rank), there) == expected


class Several(ranks.ProcessGroup):
    """Ranks that are told what the others gave."""

    def __init__(self, rank: int, size: int, others: list[dict] | None = None) -> None:
        super().__init__(RankInfo(rank, size, ("127.0.0.1",), 1))
        self.others = others or []

    def gather(self, row: np.ndarray) -> np.ndarray:
        texts = [packed(facts) for facts in self.others]
        if len(row) == 8:
            return np.stack([row, *(np.frombuffer(np.array([len(text)], "<i8").tobytes(), np.uint8) for text in texts)])
        return np.stack([row, *(np.pad(text, (0, len(row) - len(text))) for text in texts)])


class TestShare:
    @pytest.mark.parametrize("size", [1, 2, 4])
    def test_the_parts_of_all_ranks_are_the_batch(self, size: int) -> None:
        batch = np.arange(32)
        results = [batch[Several(rank, size).share(32)[0]] for rank in range(size)]
        assert np.array_equal(np.concatenate(results), batch)
        assert {len(part) for part in results} == {32 // size}

    def test_a_last_batch_that_does_not_divide_is_everybodys(self) -> None:
        assert Several(1, 4).share(6) == (slice(None), SINGLE_PROCESS)


FACTS: dict[str, object] = {"params.seed": 0, "SHA-256 of data": "aa"}


class TestAgree:
    def test_the_same(self) -> None:
        Several(0, 3, [FACTS, FACTS]).agree(FACTS)
        SINGLE_PROCESS.agree(FACTS)

    @pytest.mark.parametrize(
        ("other", "said"),
        [
            ({"params.seed": 1}, "rank 2 differs from rank 0 in params.seed: 1 and 0"),
            ({"SHA-256 of data": "bb" * 40}, "rank 2 differs from rank 0 in SHA-256 of data: bbbb"),
            ({"the version of torch": "3"}, "rank 2 differs from rank 0 in the version of torch: 3 and None"),
        ],
    )
    def test_which_rank_differs_in_what(self, other: dict, said: str) -> None:
        with pytest.raises(ReproError, match=said):
            Several(0, 3, [FACTS, FACTS | other]).agree(FACTS)


class TestPort:
    def test_in_use(self, says) -> None:
        says({})
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            with pytest.raises(ReproError, match=rf"port {port} .*MASTER_PORT"):
                ranks.check_port(RankInfo(0, 2, ("127.0.0.1",), port))
            ranks.check_port(RankInfo(1, 2, ("127.0.0.1",), port))  # it is rank 0 that listens
            says({"TORCHELASTIC_USE_AGENT_STORE": "True"})
            ranks.check_port(RankInfo(0, 2, ("127.0.0.1",), port))  # torchrun does

    def test_free_ones(self, says) -> None:
        says({})
        port = launch.free_port(3)
        for offset in range(3):
            ranks.check_port(RankInfo(0, 2, ("127.0.0.1",), port + offset))


class TestLock:
    @staticmethod
    def refused(folder: str, answers) -> None:
        try:
            with files.locked(Path(folder)):
                answers.put("")
        except ReproError as error:
            answers.put(str(error))

    def elsewhere(self, folder: Path) -> str:
        """What another process is told that wants the folder."""
        context = multiprocessing.get_context("spawn")
        answers = context.Queue()
        other = context.Process(target=self.refused, args=(str(folder), answers))
        other.start()
        answer = answers.get(timeout=HANG)
        other.join()
        return answer

    def test_one_process_at_a_time(self, tmp_path: Path) -> None:
        with files.locked(tmp_path / "model"):
            assert "another run (process " in self.elsewhere(tmp_path / "model")
            assert not self.elsewhere(tmp_path / "other")
        assert not self.elsewhere(tmp_path / "model")

    def test_it_ends_with_the_process(self, tmp_path: Path) -> None:
        program = (
            "import os, pathlib, sys; from repro import files\n"
            "with files.locked(pathlib.Path(sys.argv[1])): os.kill(os.getpid(), 9)"
        )
        root = Path(launch.__file__).parents[3]
        killed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=root, check=False)
        assert killed.returncode == -9
        with files.locked(tmp_path):
            pass


AFTER = (
    "while rank != {0} and not os.path.exists(os.environ[launch.ERRORS] + '/{0}' + launch.ERROR): time.sleep(0.01)\n"
)
"""A program in which other ranks wait for the error of one."""


class TestLaunch:
    """start() and watch() with stand-ins for the ranks: programs that do as their rank says."""

    @pytest.fixture
    def launched(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
        """A function that launches a program in three ranks, or in the one whose rank is given."""
        monkeypatch.setenv("PYTHONPATH", str(Path(launch.__file__).parents[3]))
        begin = "import os, time; from repro.trainers.loop import launch; rank = int(os.environ['RANK']); launch.join_launcher()\n"

        def launched(program: str, rank_info: RankInfo | None = None) -> int:
            run = [sys.executable, "-c", begin + program]
            monkeypatch.setattr(launch, "command", lambda folder, _: ["env", f"{launch.ERRORS}={folder}", *run])
            before = dict(os.environ)
            try:
                return launch.watch(rank_info, []) if rank_info else launch.start(3, [], launch.processes)
            finally:
                assert dict(os.environ) == before  # what a rank is told is for the ranks alone

        return launched

    def test_all_end_well(self, launched) -> None:
        assert launched("") == 0

    def test_one_error_is_shown_for_all(self, launched, capfd) -> None:
        assert launched(AFTER.format(0) + "launch.leave_error(f'error: {rank}'); exit(2)") == 2
        assert capfd.readouterr().err == "error: 0\n"

    def test_the_cause_is_shown_not_its_effects(self, launched, capfd) -> None:
        program = "launch.leave_error('error: disk full' if rank == 1 else 'error: lost another rank'); exit(1)"
        assert launched(AFTER.format(1) + program) == 1
        assert capfd.readouterr().err == "error: disk full\n"

    def test_a_rank_that_is_killed_ends_the_others(self, launched, capfd) -> None:
        program = f"os.write(2, b'framework'); os.kill(os.getpid(), 9) if rank == 1 else time.sleep({HANG})"
        with pytest.raises(ReproError, match=r"rank 1 was killed by SIGKILL.*params.resume=auto"):
            launched(program)
        assert capfd.readouterr().err == ""

    def test_who_was_killed_first_where_torchrun_ended_the_others(self, tmp_path: Path) -> None:
        with pytest.raises(ReproError, match=r"rank 2 was killed by SIGKILL"):
            launch._reported({0: -signal.SIGTERM, 2: -signal.SIGKILL}, str(tmp_path))

    def test_a_rank_that_aborts_shows_what_its_framework_wrote(self, launched, capfd) -> None:
        with pytest.raises(ReproError, match=r"rank 2 was killed by SIGABRT"):
            launched(f"os.write(2, b'trace'); os.abort() if rank == 2 else time.sleep({HANG})")
        assert capfd.readouterr().err == "trace\n"

    def test_python_goes_on_speaking(self, launched, capfd) -> None:
        assert launched("import sys; print(rank, file=sys.stderr)", RankInfo(2, 4, ("a",), 1)) == 0
        assert capfd.readouterr().err == "2\n"

    @pytest.mark.parametrize("trace", ["indicates that another task died; see", "instance of 'gloo::EnforceNotMet'"])
    def test_a_rank_that_jax_aborts_has_lost_another(self, launched, trace: str, capfd) -> None:
        assert launched(f"os.write(2, {trace.encode()!r}); os.abort()", RankInfo(2, 4, ("a",), 1)) == 1
        said = capfd.readouterr().err
        assert "rank 2 lost another rank" in said and "params.resume=auto" in said and said.count("\n") == 1

    def test_a_watched_rank_that_is_killed(self, launched) -> None:
        with pytest.raises(ReproError, match=r"rank 2 was killed by SIGKILL"):
            launched("os.kill(os.getpid(), 9)", RankInfo(2, 4, ("a",), 1))
