"""The manifest for Kubernetes: valid by its schema, in agreement with the image's entrypoint and with the ranks."""

import copy

import kubernetes_validate
import pytest
import yaml

from repro.trainers.loop import config, ranks
from repro.trainers.loop.ranks import RankInfo
from support.runs import ROOT

SERVICE, JOB = yaml.safe_load_all((ROOT / "kubernetes" / "ranks.yaml").read_text())
POD = JOB["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


def valid(manifest: dict) -> None:
    kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def test_it_is_valid_by_the_schema() -> None:
    valid(SERVICE)
    valid(JOB)
    wrong = copy.deepcopy(JOB)
    wrong["spec"]["completionmode"] = wrong["spec"].pop("completionMode")
    with pytest.raises(kubernetes_validate.ValidationError):
        valid(wrong)


def test_the_ranks_find_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in CONTAINER["env"]:
        monkeypatch.setenv(variable["name"], variable.get("value", "3"))
    size = JOB["spec"]["completions"]
    hosts = tuple(f"{JOB['metadata']['name']}-{rank}.{POD['subdomain']}" for rank in range(size))
    assert ranks.rank_from_environment() == RankInfo(3, size, hosts, 29500)
    assert (JOB["spec"]["completionMode"], JOB["spec"]["parallelism"]) == ("Indexed", size)
    assert SERVICE["metadata"]["name"] == POD["subdomain"]
    assert SERVICE["spec"]["selector"] == {"job-name": JOB["metadata"]["name"]}


def test_the_arguments_are_the_entrypoints(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    task, workspace, *overrides = CONTAINER["args"]
    assert task in config.FRAMEWORKS and workspace == "--workspace=/workspace"
    monkeypatch.setenv("WORKSPACE_PATH", "/workspace")
    assert config.compose_config(tmp_path, overrides).params.resume == "auto"
    assert f"IMAGE       := {CONTAINER['image']}\n" in (ROOT / "Makefile").read_text()
