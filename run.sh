#!/usr/bin/env bash
# The one entrypoint, on the host and in every container. It finds the command's environment, removes the variables that
# could change the bits of a run, and hands over to `python -m repro`, which reads the arguments and does the work.
set -euo pipefail
unset CDPATH # or `cd` may go elsewhere, and print

# `python -m repro`, with the root, the first argument, in the import path of this one process alone.
readonly START="import sys; sys.path.insert(0, sys.argv.pop(1)); from repro.__main__ import command; command()"

stop() { # stop EXIT_CODE WHAT_AND_REMEDY
  echo "error: $2" >&2
  exit "$1"
}

# Variables that steer Python, the frameworks or the libraries below them are moved to REPRO_IGNORED_NAME, where
# `experiment.json` records them and nothing else reads them. What only says which GPU to use stays.
ignore_variables() {
  local libraries='^(PYTHON|LD_PRELOAD$|LD_LIBRARY_PATH$|GLIBC_TUNABLES$|NPROC$|PJRT_|HYDRA_|NPY_|NUMEXPR_|NUMBA_)'
  local frameworks='^(TORCH|PYTORCH|ATEN_|TF_|TF2_|KERAS_|JAX_|XLA_|FLAX_|TRITON_|AUTOGRAPH_|LIBTPU_)'
  local mathematics='^(MKL|ONEDNN_|DNNL_|OMP_|KMP_|GOMP_|OPENBLAS_|GOTO_|BLIS_|VECLIB_|LIBXSMM_|TBB_|NVPL_|ACL_)'
  local who_is_who='^TORCHELASTIC_' # torchrun's word to its ranks
  local cuda='^(CUDA_|CUBLAS|CUDNN_|CUFFT_|CUTLASS_|NCCL_|NVBLAS_|NVIDIA_TF32_OVERRIDE$)'
  local which_gpu='^CUDA_(VISIBLE_DEVICES|DEVICE_ORDER|MPS_.*|CACHE_PATH)$'
  local name
  for name in $(compgen -e); do
    [[ $name =~ $libraries || $name =~ $frameworks || $name =~ $mathematics || $name =~ $cuda ]] || continue
    [[ $name =~ $which_gpu || $name =~ $who_is_who ]] && continue
    export "REPRO_IGNORED_$name=${!name}"
    unset "$name"
  done
  if [[ -d /.singularity.d/libs ]]; then # where Apptainer's --nv puts the host's driver; nothing else of this variable stays
    export LD_LIBRARY_PATH=/.singularity.d/libs
  fi
}

# The folder that `repro record`, `repro verify` and `repro portable` put before all others in PYTHONPATH. It loads what
# observes a training, or portable numerics. Nothing else of PYTHONPATH gets in.
injected() {
  local first=${PYTHONPATH-}
  first=${first%%:*}
  [[ -n ${REPRO_OBSERVE-}${REPRO_PORTABLE-} ]] || return 0
  if [[ $first == /* && -f $first/sitecustomize.py && -f $first/../imports.py ]]; then
    echo "$first:"
  fi
}

# In a container the user's number may have no name and no home, and the root may be read-only.
settle_home() {
  export LOGNAME=${LOGNAME:-repro}
  [[ ${HOME:-/} != / && -w $HOME ]] && return
  local home=${TMPDIR:-/tmp}/repro-home-$UID
  (umask 077 && mkdir -p "$home") 2>/dev/null && [[ -O $home && -w $home ]] ||
    stop 1 "no folder to keep caches in: HOME=${HOME-} and $home are not writable; set HOME or TMPDIR to one that is"
  unset XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME MPLCONFIGDIR
  export HOME=$home
}

root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)
task=${1-}
case $task in
  pytorch | tensorflow | jax) candidates=("$task") ;;
  sweep) candidates=(sweep pytorch tensorflow jax) ;; # the first has launchers besides Hydra's own
  *) candidates=(pytorch tensorflow jax sweep) ;;     # any will do: it holds what all of them share
esac
environment=
for name in "${candidates[@]}"; do
  if [[ -e $root/.venv/$name/installed ]]; then # install.sh writes it last
    environment=$root/.venv/$name
    break
  fi
done

# Without an environment, the machine's Python answers --help, refuses wrong usage, and says which environment is missing:
# that takes the standard library alone, and -S leaves nothing else.
if [[ -z $environment ]]; then
  for python in python3 python3.11 python3.12 python3.13; do
    "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    exec "$python" -I -S -c "$START" "$root" "$@"
  done
  stop 1 "no Python 3.11 or newer on the PATH; install it, and then an environment: requirements/install.sh ${candidates[0]}"
fi

# A command of one's own keeps its environment as it is.
case " $* " in
  " record "* | *" -- "* | *" --mlcube"*)
    exec "$environment/bin/python" -P -c "$START" "$root" "$@"
    ;;
esac

injected=$(injected)
ignore_variables
settle_home
export LC_ALL=C.UTF-8
export PYTHONPATH=$injected$root PYTHONNOUSERSITE=1 PYTHONHASHSEED=0
# The C library would hand freed megabytes back to the kernel at each step, only to ask for them anew at the next.
export MALLOC_TRIM_THRESHOLD_=268435456 MALLOC_MMAP_THRESHOLD_=268435456 MALLOC_TOP_PAD_=67108864
export NUMPY_MADVISE_HUGEPAGE=0 # the kernel may take long to find huge pages for the data set
export KERAS_HOME=/dev/null # no such folder: Keras would take its precision and layout from ~/.keras/keras.json
# `verify` may have the framework run by an emulator of another CPU, or by another Python altogether.
read -ra python <<<"${REPRO_EMULATOR-} ${REPRO_PYTHON-}" # words: programs and their options
[[ -n ${REPRO_PYTHON-} ]] || python+=("$environment/bin/python")
# -P keeps the current folder out of the import path, -s the user's ~/.local.
exec "${python[@]}" -P -s -m repro "$@"
