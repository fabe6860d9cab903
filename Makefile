# `make run` trains, `make test` tests, `make help` lists the rest.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

WORKSPACE   ?= workspace
ARGS        ?=
FRAMEWORKS  ?= pytorch tensorflow jax
ACCELERATOR ?= cuda

IMAGE       := repro:0.1.0
SIF         := repro.sif
# Apptainer's default compression takes much longer, for a little less. SIF_BASE is for machines without a registry.
SIF_ARGS    ?= --mksquashfs-args "-comp zstd -Xcompression-level 3"
SIF_BASE    ?=
# The commit that an image is made from, with `-dirty` where files differ from it: an image holds no .git to tell.
COMMIT       = $(shell git describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null || echo unknown)
BUILD_ARGS   = --build-arg FRAMEWORKS="$(FRAMEWORKS)" --build-arg ACCELERATOR=$(ACCELERATOR) --build-arg COMMIT=$(COMMIT)
# `download` writes this file last: where it is, all are.
DATA         = $(WORKSPACE)/data/$(if $(findstring fashion_mnist,$(ARGS)),FashionMNIST,MNIST)/raw/t10k-labels-idx1-ubyte

INSTALL     := requirements/install.sh
DEV         := .venv/dev/bin
# Most of a test is the start of a framework, on one core. tests/conftest.py says which tests stay together.
PYTEST      := $(DEV)/pytest --numprocesses=2 --dist=loadgroup --no-loadscope-reorder
SCRIPTS      = run.sh requirements/install.sh requirements/aarch64.sh .ci/run slurm/*.sbatch
UPGRADE     ?= --upgrade
LOCK         = .venv/uv/bin/uv pip compile --quiet $(UPGRADE) --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
# What each environment that runs the trainers holds besides its own .in file.
TRAINERS    := ../pyproject.toml --extra trainers

.PHONY: help run pytorch tensorflow jax verify benchmark report mlcube image sif check docs test test-portable test-containers test-all lock clean

help: ## show this list
	@echo 'make TARGET [ARGS="params.seed=1 ..."] [WORKSPACE=workspace]'
	@sed -n 's/^\([a-z -]*\):[^#=]*## \(.*\)/\1@\2/p' Makefile | while IFS=@ read -r target text; do printf '  %-24s%s\n' "$$target" "$$text"; done

run: pytorch ## set up PyTorch and the data where they are missing, and train

pytorch tensorflow jax: ## set up and train with this framework; numerics=portable for the same bits everywhere
	@$(INSTALL) $@
	@test -e '$(DATA)' || ./run.sh download --workspace='$(WORKSPACE)' $(ARGS)
	./run.sh $@ --workspace='$(WORKSPACE)' $(if $(numerics),params.numerics=$(numerics)) $(ARGS)

verify: ## ask "will I get this again?" of all frameworks; numerics=portable ARGS=questions=threads
	@$(INSTALL) pytorch tensorflow jax
	@test -e '$(DATA)' || ./run.sh download --workspace='$(WORKSPACE)' $(ARGS)
	./run.sh $@ --workspace='$(WORKSPACE)' $(if $(numerics),numerics=$(numerics)) $(ARGS)

benchmark: ## measure how fast training is on this machine; ARGS="frameworks=jax batch_sizes=16,64,256"
	@$(INSTALL) pytorch tensorflow jax
	@test -e '$(DATA)' || ./run.sh download --workspace='$(WORKSPACE)' $(ARGS)
	./run.sh $@ --workspace='$(WORKSPACE)' $(if $(numerics),numerics=$(numerics)) $(ARGS)

report: ## make a page of what both found: WORKSPACE/report/report.html; ARGS names files of other machines
	./run.sh report --workspace='$(WORKSPACE)' $(ARGS)

mlcube: ## set up the tool .venv/mlcube/bin/mlcube
	@$(INSTALL) $@

image: ## build the Docker image; FRAMEWORKS=jax ACCELERATOR=cpu makes it small
	docker build $(BUILD_ARGS) --tag $(IMAGE) .

sif: ## build the Singularity/Apptainer image, as a plain user; the same options
	singularity build --force --fakeroot $(SIF_ARGS) $(SIF_BASE) $(BUILD_ARGS) $(SIF) Singularity.recipe

check: docs ## lint, formatting, types, which way imports go, shell scripts, the documentation's links and causes
	@$(INSTALL) dev
	$(DEV)/ruff check .
	$(DEV)/ruff format --check .
	$(DEV)/mypy
	$(DEV)/lint-imports --no-cache
	$(DEV)/shellcheck $(SCRIPTS)
	$(DEV)/python docs/causes.py

docs: ## build the site of docs/ into site/; stop at a dead link or path, or an old --help; open site/index.html
	@$(INSTALL) $@
	.venv/docs/bin/python docs/help.py
	.venv/docs/bin/zensical build --clean --strict
	.venv/docs/bin/python docs/links.py site $$(git ls-files '*README.md') CHANGELOG.md index.ipynb

test: ## set up everything and run the tests of the tool, the trainers and the core of portable numerics; PYTEST_ADDOPTS chooses among them
	@$(INSTALL) pytorch tensorflow jax dev mlcube
	$(PYTEST) -m "not slow and not containers and not deep"

test-portable: ## the deep tests: each mode, library and compiler of portable numerics, and what `make test` has in one framework
	@$(INSTALL) pytorch tensorflow jax dev
	$(PYTEST) -m "deep and not slow"

test-containers: ## the tests of the images, with Docker and Apptainer: each builds its image
	@$(INSTALL) pytorch tensorflow jax dev
	$(PYTEST) -m "containers and not slow"

test-all: ## all tests, those that take minutes, too
	@$(INSTALL) pytorch tensorflow jax dev mlcube sweep
	$(PYTEST)

lock: ## lock the newest versions that pyproject.toml and the .in files allow; UPGRADE= keeps those that are locked
	@$(INSTALL) dev
	cd requirements && for lock in uv build docs; do ../$(LOCK) $$lock.in -o $$lock.txt || exit 1; done
	cd requirements && ../$(LOCK) mlcube.in --overrides mlcube-overrides.in -o mlcube.txt
	cd requirements && for lock in dev jax sweep tensorflow; do ../$(LOCK) $(TRAINERS) $$lock.in -o $$lock.txt || exit 1; done
	cd requirements && ../$(LOCK) $(TRAINERS) pytorch.in -o pytorch-cuda.txt
	cd requirements && ../$(LOCK) $(TRAINERS) pytorch.in -c pytorch-cuda.txt --excludes pytorch-cpu-excludes.in -o pytorch.txt
	cd requirements && for lock in tensorflow jax; do ../$(LOCK) $(TRAINERS) $$lock-cuda.in -o $$lock-cuda.txt || exit 1; done

clean: ## remove environments, the SIF and caches; never data, checkpoints or results
	rm -rf .venv site .cache $(SIF) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
