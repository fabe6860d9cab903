#!/usr/bin/env bash
# Makes the environments .venv/NAME out of their locks. The host, the Dockerfile and Singularity.recipe use this one script.
#
#   requirements/install.sh [--accelerator=cpu|cuda] NAME...        NAME: pytorch tensorflow jax mlcube sweep dev docs
#
# With `cuda` (the default where there is an NVIDIA driver) NAME-cuda.txt is installed if there is one, else NAME.txt; both
# hold the same versions of all that computes on a CPU. The file .venv/NAME/installed is written last and holds the lock's
# SHA-256, so an environment that is there costs nothing, and one that was interrupted never looks complete.
set -euo pipefail
unset CDPATH

requirements=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
environments=$(dirname -- "$requirements")/.venv
readonly requirements environments
readonly NAMES=(pytorch tensorflow jax mlcube sweep dev docs)
export UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=1 # the Python and the certificates of this machine

stop() { # stop EXIT_CODE WHAT_AND_REMEDY
  echo "error: $2" >&2
  exit "$1"
}

is_one_of() { # is_one_of VALUE CHOICE...
  local value=$1 choice
  shift
  for choice in "$@"; do [[ $value == "$choice" ]] && return; done
  return 1
}

is_complete() { # is_complete NAME LOCK
  local sum installed
  [[ -x $environments/$1/bin/python && -e $environments/$1/installed ]] || return 1
  sum=$(sha256sum <"$2") && read -r installed <"$environments/$1/installed" && [[ $sum == "$installed" ]]
}

mark_complete() { # mark_complete NAME LOCK
  sha256sum <"$2" >"$environments/$1/installed"
}

# 3.11 first: it is what the images have, and the locks hold other versions of NumPy for newer ones.
find_python() {
  local candidate
  for candidate in python3.11 python3 python3.12 python3.13; do
    if "$candidate" -I -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  stop 1 "no Python 3.11, 3.12 or 3.13 on the PATH; install one (on Debian 12: apt-get install python3 python3-venv)"
}

# uv comes from its own lock, by the pip that every venv starts with.
install_uv() {
  is_complete uv "$requirements/uv.txt" && return
  "$python" -I -c 'import venv, ensurepip' 2>/dev/null ||
    stop 1 "$python cannot make environments; install its venv module (on Debian: apt-get install python3-venv)"
  rm -rf "$environments/uv"
  "$python" -I -m venv "$environments/uv"
  "$environments/uv/bin/python" -I -m pip install --quiet --disable-pip-version-check --only-binary :all: \
    --require-hashes --requirement "$requirements/uv.txt" ||
    stop 1 "could not install uv (see above); the package index must be reachable, over a proxy if HTTPS_PROXY names one"
  mark_complete uv "$requirements/uv.txt"
}

install() { # install NAME LOCK
  echo "install.sh: making .venv/$1 from $(basename -- "$2")" >&2
  rm -rf "${environments:?}/$1"
  uv venv --quiet --relocatable --python "$python" "$environments/$1"
  uv pip sync --quiet --require-hashes --build-constraints "$requirements/build.txt" \
    --python "$environments/$1/bin/python" "$2" ||
    stop 1 "could not install $1 (see above); the package index must be reachable, over a proxy if HTTPS_PROXY names one"
  mark_complete "$1" "$2"
}

uv() { "$environments/uv/bin/uv" "$@"; }

accelerator=cpu
if [[ -e /proc/driver/nvidia/version ]] || command -v nvidia-smi >/dev/null; then accelerator=cuda; fi
names=()
for argument in "$@"; do
  case $argument in
    --accelerator=cpu | --accelerator=cuda) accelerator=${argument#*=} ;;
    -*) stop 2 "unknown option '$argument'; the one option is --accelerator=cpu or --accelerator=cuda" ;;
    *)
      is_one_of "$argument" "${NAMES[@]}" || stop 2 "unknown environment '$argument'; the names are ${NAMES[*]}"
      names+=("$argument")
      ;;
  esac
done
[[ ${#names[@]} -gt 0 ]] || stop 2 "nothing to install; name one or more of ${NAMES[*]}"

python=
for name in "${names[@]}"; do
  lock=$requirements/$name.txt
  [[ $accelerator == cuda && -e $requirements/$name-cuda.txt ]] && lock=$requirements/$name-cuda.txt
  is_complete "$name" "$lock" && continue
  [[ -n $python ]] || python=$(find_python)
  install_uv
  install "$name" "$lock"
done
