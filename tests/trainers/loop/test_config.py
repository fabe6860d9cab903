"""repro.trainers.loop.config: every key's type and range, misspelt keys, broken YAML, and which train.yaml counts."""

from dataclasses import asdict, fields
from operator import attrgetter
from pathlib import Path

import pytest

from repro.errors import UsageError
from repro.trainers.loop import config, layout

REPOSITORY = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def workspace_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKSPACE_PATH", str(tmp_path))


def compose(*overrides: str, workspace: Path = Path("nowhere")) -> config.Config:
    return config.compose_config(workspace, list(overrides))


def refusal(*overrides: str, workspace: Path = Path("nowhere")) -> str:
    """The one line that a wrong configuration ends with."""
    with pytest.raises(UsageError) as caught:
        compose(*overrides, workspace=workspace)
    assert "\n" not in str(caught.value)
    return str(caught.value)


ACCEPTED: dict[str, list[tuple[str, object]]] = {
    "params.seed": [("0", 0), ("18446744073709551615", 2**64 - 1)],
    "params.n_epochs": [("1", 1)],
    "params.num_workers": [("0", 0), ("256", 256)],
    "params.batch_size_train": [("1", 1), ("60000", 60_000)],
    "params.batch_size_test": [("1", 1), ("10000", 10_000)],
    "params.ranks": [("1", 1), ("32", 32)],
    "params.model": [("lenet", "lenet"), ("convnet", "convnet")],
    "params.optimizer": [("sgd", "sgd"), ("adam", "adam"), ("adadelta", "adadelta")],
    "params.learning_rate": [("1e-3", 1e-3), ("1", 1.0)],
    "params.momentum": [("0", 0.0), ("0.99", 0.99)],
    "params.log_interval": [("1", 1)],
    "params.numerics": [("fast", "fast"), ("deterministic", "deterministic")],
    "params.engine": [("auto", "auto"), ("float64", "float64"), ("int8", "int8"), ("int16", "int16")],
    "params.device": [("auto", "auto"), ("cpu", "cpu"), ("gpu", "gpu")],
    "params.threads": [("1", 1), ("1024", 1024)],
    "params.max_steps": [("1", 1), ("null", None)],
    "params.checkpoint_steps": [("1", 1), ("null", None)],
    "params.resume": [("auto", "auto"), ("/a b/c", "/a b/c"), ("'a=b'", "a=b")],
    "data.dataset": [("mnist", "mnist"), ("fashion_mnist", "fashion_mnist")],
    "data.mirrors": [("{mnist:[a],fashion_mnist:[]}", {"mnist": ["a"], "fashion_mnist": []})],
    "data.folders": [("{fashion_mnist:a}", {"fashion_mnist": "a"})],
    "data.npm": [("{mnist:a}", {"mnist": "a"})],
    "output.data_path": [("/a b", "/a b")],
    "output.model_path": [("/a", "/a")],
    "params.trace_steps": [("null", None), ("1", 1)],
    "params.trace_operations": [("false", False)],
    "verify.questions": [("[threads,seed]", ["threads", "seed"]), ("[everything]", ["everything"])],
    "verify.frameworks": [("[jax]", ["jax"])],
    "verify.numerics": [("[portable,fast]", ["portable", "fast"])],
    "verify.steps": [("10", 10)],
    "verify.docker_image": [("other:1", "other:1")],
    "verify.sif": [("/images/other.sif", "/images/other.sif")],
    "verify.others": [("{}", {})],
    "data.train_samples": [("1", 1), ("60000", 60_000)],
    "benchmark.frameworks": [("[jax]", ["jax"])],
    "benchmark.numerics": [("[fast]", ["fast"])],
    "benchmark.devices": [("[cpu,gpu]", ["cpu", "gpu"])],
    "benchmark.batch_sizes": [("[16,4096]", [16, 4096])],
    "benchmark.threads": [("[1,2]", [1, 2])],
    "benchmark.train_samples": [("[600]", [600])],
    "benchmark.tutorial": [("false", False)],
    "benchmark.tuned": [("true", True)],
    "benchmark.target": [("null", None), ("0.9", 0.9)],
    "benchmark.epochs": [("0.01", 0.01)],
    "benchmark.rounds": [("1", 1)],
    "benchmark.minutes": [("0.5", 0.5)],
    "benchmark.against": [("null", None), ("/old.json", "/old.json")],
}

REFUSED: dict[str, list[str]] = {
    "params.seed": ["-1", "18446744073709551616", "1.5", "true", "abc", "null", "", "[1,2]", "1,2"],
    "params.n_epochs": ["0", "1e3", "null"],
    "params.num_workers": ["-1", "257"],
    "params.batch_size_train": ["0", "60001"],
    "params.batch_size_test": ["0", "10001"],
    "params.ranks": ["0", "-1", "1.5", "3", "64"],
    "params.model": ["LeNet", "null"],
    "params.optimizer": ["SGD", "1", "null"],
    "params.learning_rate": ["0", "-1", "nan", "inf", "true", "fast"],
    "params.momentum": ["-0.1", "1", "nan"],
    "params.log_interval": ["0"],
    "params.numerics": ["exact"],
    "params.engine": ["bfloat16"],
    "params.device": ["cuda"],
    "params.threads": ["0", "1025"],
    "params.max_steps": ["0", "1.5"],
    "params.checkpoint_steps": ["0", "-3"],
    "params.resume": ["", "null", "/x=y", "a(b"],
    "data.dataset": ["mnis"],
    "data.mirrors": ["null", "{mnist:a}"],
    "data.folders": ["null"],
    "data.npm": ["null"],
    "output.data_path": ["null"],
    "output.model_path": ["null"],
    "params.trace_steps": ["0", "-1"],
    "params.trace_operations": ["2.5", "true"],
    "verify.questions": ["seed"],
    "verify.frameworks": ["[]", "[torch]"],
    "verify.numerics": ["[]", "[exact]"],
    "verify.steps": ["9"],
    "verify.docker_image": ["null"],
    "verify.sif": ["null"],
    "verify.others": ["null", "{torch: x}", "{jax: 1, torch: x}"],
    "data.train_samples": ["0", "60001", "null"],
    "benchmark.frameworks": ["[]", "[torch]"],
    "benchmark.numerics": ["[]", "[exact]"],
    "benchmark.devices": ["[]", "[tpu]"],
    "benchmark.batch_sizes": ["[]", "[0]", "[32,32]", "[60001]", "32"],
    "benchmark.threads": ["[]", "[0]", "[1025]"],
    "benchmark.train_samples": ["[]", "[60001]"],
    "benchmark.tutorial": ["2.5", "null"],
    "benchmark.tuned": ["2.5", "null"],
    "benchmark.target": ["-0.1", "1.1", "nan"],
    "benchmark.epochs": ["0", "nan", "1001"],
    "benchmark.rounds": ["0", "1001", "1.5"],
    "benchmark.minutes": ["0", "nan"],
    "benchmark.against": ["[a]"],
}


def test_the_two_tables_name_every_key():
    assert set(ACCEPTED) == set(REFUSED) == set(config.KEYS)


@pytest.mark.parametrize("place", range(max(map(len, ACCEPTED.values()))))
def test_a_good_value_is_taken_over(place: int):
    """The value of each key at one place of the table, all in one command line."""
    rows = {key: rows[place] for key, rows in ACCEPTED.items() if place < len(rows)}
    checked = compose(*(f"{key}={given}" for key, (given, _) in rows.items()))
    values = {key: attrgetter(key)(checked) for key in rows}
    assert {key: (value, type(value)) for key, value in values.items()} == {
        key: (expected, type(expected)) for key, (_, expected) in rows.items()
    }


@pytest.mark.parametrize(("key", "given"), [(key, given) for key, values in REFUSED.items() for given in values])
def test_a_bad_value_is_refused_with_its_key(key: str, given: str):
    assert key in refusal(f"{key}={given}")


@pytest.mark.parametrize(
    ("override", "value", "remedy"),
    [
        ("params.seed=-1", "-1", "between 0 and 18446744073709551615"),
        ("params.n_epochs=0", "0", "at least 1"),
        ("params.n_epochs=abc", "'abc'", "Integer"),
        ("params.optimizer=sgdd", "sgdd", "sgd, adam"),
        ("params.learning_rate=0", "0", "above 0"),
        ("params.momentum=1", "1.0", "below 1"),
        ("params.resume=/x=y", "/x=y", "quotes"),
    ],
)
def test_a_refusal_says_the_value_and_the_remedy(override: str, value: str, remedy: str):
    message = refusal(override)
    assert value in message
    assert remedy in message


def test_the_models_and_the_optimizers_are_those_of_the_layout():
    assert config.CHOICES["params.model"] == tuple(layout.MODELS)
    assert config.CHOICES["params.optimizer"] == tuple(layout.SLOTS)


@pytest.mark.parametrize(
    ("override", "meant"),
    [
        ("params.sed=1", "params.seed"),
        ("param.seed=1", "params.seed"),
        ("+params.leaning_rate=1", "params.learning_rate"),
        ("params.batch_size=1", "params.batch_size_test"),
        ("output.datapath=x", "output.data_path"),
    ],
)
def test_a_misspelt_override_gets_a_suggestion(override: str, meant: str):
    assert refusal(override).endswith(f"did you mean {meant}?")


@pytest.mark.parametrize("override", ["colour=red", "+colour=red", "params=1", "~output"])
def test_an_unknown_key_gets_the_list_of_keys(override: str):
    assert ", ".join(config.KEYS) in refusal(override)


def test_keys_of_hydra_and_of_the_environment_are_free():
    assert compose("hydra.job.chdir=false", "+environment.XLA_FLAGS=--x").environment == {"XLA_FLAGS": "--x"}


def test_train_yaml_holds_the_dataclasses_defaults():
    """But for where to get the data, which has no place in code."""
    written = asdict(compose())
    assert written["params"] == asdict(config.Params())
    assert {key: written["data"][key] for key in ("dataset",)} == {"dataset": config.Data().dataset}
    assert written["environment"] == config.Config().environment
    text = (REPOSITORY / "workspace" / "train.yaml").read_text()
    for key in fields(config.Output):
        assert f"{key.name}: {key.default}\n" in text


def test_train_yaml_writes_out_every_key():
    text = (REPOSITORY / "workspace" / "train.yaml").read_text()
    assert [key for key in config.KEYS if f"\n  {key.split('.')[1]}:" not in text] == []


def test_paths_lie_in_the_workspace(tmp_path: Path):
    output = compose().output
    assert (output.data_path, output.model_path) == (f"{tmp_path}/data", f"{tmp_path}/model")


def write(folder: Path, text: str | bytes) -> Path:
    (folder / "train.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def test_the_workspaces_train_yaml_wins_over_the_baked_one(tmp_path: Path):
    assert compose(workspace=tmp_path).params.seed == 0
    write(tmp_path, "params: {seed: 5}\n")
    assert compose(workspace=tmp_path).params.seed == 5
    assert config.folder(tmp_path) == tmp_path


def test_an_override_wins_over_the_file(tmp_path: Path):
    write(tmp_path, "params: {seed: 5}\n")
    assert compose("params.seed=7", workspace=tmp_path).params.seed == 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("params: {seed: 1\n", "line 2"),
        ("params:\n\tseed: 1\n", "line 2"),
        ("params: {seed: 1, seed: 2}\n", "duplicate key seed"),
        ("params: !!python/object/apply:os.getcwd []\n", "tag"),
        ("- a list\n", "ListConfig"),
        ("defaults: [nowhere]\n", "nowhere"),
        (b"\xff\xfe\x00", "utf-8"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, text: str | bytes, said: str):
    message = refusal(workspace=write(tmp_path, text))
    assert str(tmp_path / "train.yaml") in message
    assert said in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("params: {sed: 1}\n", "did you mean params.seed?"),
        ("parms: {seed: 1}\n", "'parms'"),
        ("params: {seed: abc}\n", "params.seed: Value 'abc'"),
        ("params: 3\n", "Params"),
        ("output: {data_path: '${oc.env:NO_SUCH_VARIABLE}'}\n", "NO_SUCH_VARIABLE"),
    ],
)
def test_a_wrong_key_or_value_in_the_file_is_named(tmp_path: Path, text: str, said: str):
    assert said in refusal(workspace=write(tmp_path, text))


def test_what_decides_the_bits():
    keys = {
        "params.seed",
        "params.batch_size_train",
        "params.model",
        "params.optimizer",
        "params.learning_rate",
        "params.numerics",
        "params.threads",
        "params.ranks",
        "device",
        "data.dataset",
        "environment",
    }
    assert set(config.deciding(compose(), "cpu")) == keys | {"params.momentum"}
    assert set(config.deciding(compose("params.optimizer=adam"), "cpu")) == keys
    portable = config.deciding(compose("params.numerics=portable"), "gpu")
    assert set(portable) == keys - {"params.threads", "params.ranks", "device", "environment"} | {
        "params.momentum",
        config.PORTABLE,
    }


def test_ranks_divide_the_batch():
    said = refusal("params.ranks=3")
    assert said == "configuration: params.ranks=3: must divide params.batch_size_train=32"
    assert compose("params.ranks=3", "params.batch_size_train=33").params.ranks == 3


def test_operations_are_traced_in_one_rank():
    keys = ("params.trace_operations=true", "params.trace_steps=1")
    assert "params.trace_operations=true: needs params.ranks=1" in refusal(*keys, "params.ranks=2")
    compose(*keys)


def test_a_part_of_the_data_is_another_run():
    """And the whole of it decides nothing: checkpoints from before the key was there resume."""
    assert config.deciding(compose("data.train_samples=600"), "cpu")["data.train_samples"] == 600


def test_other_environments_belong_to_a_framework():
    assert compose("+verify.others.jax=/srv/old/bin/python").verify.others == {"jax": "/srv/old/bin/python"}
    assert "verify.others.torch: must be one of pytorch, tensorflow, jax" in refusal("+verify.others.torch=x")


@pytest.mark.parametrize("rate", ["1e-60", "1e39"])
def test_a_learning_rate_that_portable_numerics_cannot_hold(rate: str):
    said = refusal("params.numerics=portable", f"params.learning_rate={rate}")
    assert f"params.learning_rate={float(rate)} is no float32 of a size that counts" in said
    compose(f"params.learning_rate={rate}")
