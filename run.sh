#!/usr/bin/env bash
# The one entrypoint, on the host and in every container. It finds the task's environment, shuts out whatever could change
# the bits of a run, and hands over to `python -m repro`, which checks the configuration and does the work.
set -euo pipefail
unset CDPATH # or `cd` may go elsewhere, and print

readonly FRAMEWORKS=(pytorch tensorflow jax)
readonly TASKS=(download "${FRAMEWORKS[@]}" sweep verify compare benchmark report)
readonly TAKE_PATHS=(compare report) # tasks whose arguments are files or folders

usage() {
  cat <<'USAGE'
./run.sh TASK --workspace=DIR [KEY=VALUE ...] [--debug]
./run.sh compare A B [--narrow] [--debug]
./run.sh report --workspace=DIR [FILE.json ... | SWEEP] [--debug]

  TASK            download                    fetch the data set and verify it; the only task that needs a network
                  pytorch | tensorflow | jax  train, and print the fingerprint of the trained weights
                  sweep                       train once for each combination: [frameworks=pytorch,jax] params.seed=0,1,2
                                              [hydra/launcher=joblib|submitit_slurm] [sif=repro.sif]
                  verify                      ask "will I get this again?" on this machine, and answer with evidence
                                              [questions=threads,workers] [frameworks=jax] [numerics=portable]
                  benchmark                   measure how fast training is on this machine, and what each arithmetic costs
                                              [frameworks=jax] [numerics=fast] [batch_sizes=16,64,256] [minutes=5]
                                              [against=OLD.json]
                  report                      make a page of what both found, DIR/report/report.html, or of a sweep
  compare         say whether two runs, DIR/outputs/TASK/TIME each, are the same, and where and why they differ
  --narrow        rerun the steps where they first differ, to name the operation
  --workspace     the folder that holds data, results and (optional) train.yaml; it must exist
  KEY=VALUE       overrides a key of train.yaml: params.n_epochs=1 params.seed=7
  SWEEP           the folder of a sweep, DIR/outputs/sweep/TIME
  FILE.json       what verify and benchmark wrote, on this machine or others; without any, all in the workspace:
                  DIR/verify/*/results.json and DIR/benchmark/*/benchmark.json
  --debug         show the traceback of an error

Exit codes: 0 done; 1 failed; 2 wrong usage or configuration; 3 not reproducible (verify, compare, benchmark).
USAGE
}

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

# Variables that steer Python, the frameworks or the libraries below them are moved to REPRO_SHUT_OUT_NAME, where
# `experiment.json` records them and nothing else reads them. What only says which GPU to use stays.
shut_out() {
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
    export "REPRO_SHUT_OUT_$name=${!name}"
    unset "$name"
  done
  if [[ -d /.singularity.d/libs ]]; then # where Apptainer's --nv puts the host's driver; nothing else of this variable stays
    export LD_LIBRARY_PATH=/.singularity.d/libs
  fi
}

# The folder that `repro record` and `repro verify` put before all others in PYTHONPATH. It loads what observes a training,
# and changes no bit of it. Nothing else of PYTHONPATH gets in.
observer() {
  local first=${PYTHONPATH-}
  first=${first%%:*}
  if [[ -n ${REPRO_OBSERVE-} && $first == /* && -f $first/sitecustomize.py && -f $first/../recorder.py ]]; then
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

[[ $# -gt 0 ]] || { usage >&2; exit 2; }
case $1 in -h | --help) usage; exit 0 ;; esac

task=$1
shift
is_one_of "$task" "${TASKS[@]}" || stop 2 "unknown task '$task'; the tasks are ${TASKS[*]} (see ./run.sh --help)"

workspace=
arguments=()
for argument in "$@"; do
  case $argument in
    --workspace=*) workspace=${argument#--workspace=} ;;
    --workspace) stop 2 "--workspace has no value; write --workspace=DIR" ;;
    --debug) arguments+=("$argument") ;;
    --narrow) [[ $task == compare ]] || stop 2 "--narrow belongs to compare, not to $task"; arguments+=("$argument") ;;
    -h | --help) usage; exit 0 ;;
    -*) stop 2 "unknown option '$argument'; the options are --workspace=DIR and --debug (see ./run.sh --help)" ;;
    ?*) [[ $argument == ?*=* ]] || is_one_of "$task" "${TAKE_PATHS[@]}" ||
      stop 2 "cannot read argument '$argument'; write KEY=VALUE, such as params.seed=1"
      arguments+=("$argument") ;;
    *) stop 2 "cannot read argument ''; write KEY=VALUE, such as params.seed=1" ;;
  esac
done
if [[ $task == compare ]]; then
  [[ -z $workspace ]] || stop 2 "compare takes two runs' folders, no --workspace"
else
  [[ -n $workspace ]] || stop 2 "no workspace; say where data and results lie with --workspace=DIR"
  [[ -d $workspace ]] || stop 2 "workspace '$workspace' is not a folder; make it first, or correct --workspace"
  absolute=$(cd -- "$workspace" 2>/dev/null && pwd) || stop 2 "workspace '$workspace' cannot be entered; check its permissions"
  arguments=("--workspace=$absolute" "${arguments[@]}")
  export WORKSPACE_PATH=$absolute
fi

root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)
candidates=("$task")
is_one_of "$task" "${FRAMEWORKS[@]}" || candidates=("${FRAMEWORKS[@]}" sweep) # any will do: it holds what all of them share
[[ $task != sweep ]] || candidates=(sweep "${FRAMEWORKS[@]}") # the first has launchers besides Hydra's own
environment=
for name in "${candidates[@]}"; do
  if [[ -e $root/.venv/$name/installed ]]; then # install.sh writes it last
    environment=$root/.venv/$name
    break
  fi
done
[[ -n $environment ]] ||
  stop 1 "no complete environment for '$task' in $root/.venv; make it with: requirements/install.sh ${candidates[0]}"

observer=$(observer)
shut_out
settle_home
export LC_ALL=C.UTF-8
export PYTHONPATH=$observer$root PYTHONNOUSERSITE=1 PYTHONHASHSEED=0
# The C library would hand freed megabytes back to the kernel at each step, only to ask for them anew at the next.
export MALLOC_TRIM_THRESHOLD_=268435456 MALLOC_MMAP_THRESHOLD_=268435456 MALLOC_TOP_PAD_=67108864
export NUMPY_MADVISE_HUGEPAGE=0 # the kernel may take long to find huge pages for the data set
export KERAS_HOME=/dev/null # no such folder: Keras would take its precision and layout from ~/.keras/keras.json
# `verify` may have the framework run by an emulator of another CPU, or by another Python altogether.
read -ra python <<<"${REPRO_EMULATOR-} ${REPRO_PYTHON-}" # words: programs and their options
[[ -n ${REPRO_PYTHON-} ]] || python+=("$environment/bin/python")
# -P keeps the current folder out of the import path, -s the user's ~/.local.
exec "${python[@]}" -P -s -m repro "$task" "${arguments[@]}"
