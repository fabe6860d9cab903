#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: all that only such a machine can show, in one go of about five minutes.
#
#   tests/gpu.sh [FRAMEWORK ...]            of those that are installed, by requirements/install.sh pytorch tensorflow jax
#   PYTHON=python3 tests/gpu.sh jax         with a Python that has all that is needed, where nothing can be installed
#
# It trains MNIST (download it first: ./run.sh download --workspace=workspace) and prints one table: fingerprints on the CPU,
# on the GPU, again, resumed, and as published; seconds per epoch; the GPU's memory; and whether the self-check refuses what
# XLA drops. `REHEARSE=1` has the CPU in the GPU's place, to try the script. What it found stays in a folder, as JSON, too.
# Exit codes: 0 all promises kept, 1 something failed, 2 no GPU or no framework, 3 a promise was broken.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
for python in "${PYTHON-}" .venv/{jax,pytorch,tensorflow}/bin/python; do
  if [[ -n $python ]] && command -v "$python" >/dev/null; then exec env PYTHONPATH="$PWD:${PYTHONPATH-}" "$python" -P tests/gpu_host.py "$@"; fi
done
echo "error: no framework is installed: requirements/install.sh pytorch tensorflow jax, or name a Python in PYTHON" >&2
exit 2
