#!/usr/bin/env bash
# Makes environments of another architecture, .venv/aarch64/NAME: their bin/python runs the framework's own wheels for
# aarch64 under qemu-user. `verify` asks them by its question `other`: docs/reference/evidence.md.
#
#   requirements/aarch64.sh NAME...        NAME: pytorch tensorflow jax
#
# Python and the C library are Debian 12's for arm64. apt fetches and verifies them as a plain user, in folders of its own,
# so nothing of this machine changes. The wheels come from the locks, with their hashes; the same versions as here.
set -euo pipefail
unset CDPATH

requirements=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
environments=$(dirname -- "$requirements")/.venv
readonly requirements environments home=$environments/aarch64
readonly NAMES=(pytorch tensorflow jax) PYTHON=3.11
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

apt() { # apt COMMAND...: as if on an arm64 machine that has no package yet
  apt-get --quiet=2 --yes -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=false \
    -o Dir::State="$home/apt" -o Dir::State::status="$home/apt/status" -o Dir::Cache="$home/apt" \
    -o APT::Sandbox::User="$(id -un)" "$@" || stop 1 "apt-get could not fetch Debian's packages for arm64 (see above)"
}

unpack_debian() {
  [[ -e $home/root/complete ]] && return
  command -v apt-get dpkg >/dev/null || stop 1 "no apt-get and dpkg here: Python for arm64 comes from Debian's packages"
  echo "aarch64.sh: unpacking Debian's Python $PYTHON for arm64" >&2
  rm -rf "$home/root" "$home/apt"
  mkdir -p "$home/root" "$home/apt/lists/partial" "$home/apt/archives/partial"
  touch "$home/apt/status"
  apt update
  apt install --download-only "python$PYTHON" libstdc++6 libgomp1
  local package
  for package in "$home"/apt/archives/*.deb; do dpkg -x "$package" "$home/root"; done
  rm -rf "$home/apt"
  describe_cpus
  touch "$home/root/complete"
}

# Libraries look up which CPU they are on, but qemu shows them its host's description, of another kind: PyTorch 2.15 dies
# of it at its import. So the root holds a description of its own, of a Neoverse N1.
describe_cpus() {
  local number registers
  mkdir -p "$home/root/proc"
  for ((number = 0; number < $(nproc); number++)); do
    registers=$home/root/sys/devices/system/cpu/cpu$number/regs/identification
    mkdir -p "$registers"
    echo 0x00000000413fd0c1 >"$registers/midr_el1"
    cat <<END
processor : $number
Features : fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp ssbs
CPU implementer : 0x41
CPU architecture : 8
CPU variant : 0x3
CPU part : 0xd0c
CPU revision : 1

END
  done >"$home/root/proc/cpuinfo"
}

# A venv by hand, for its Python cannot run here by itself. qemu's -0 makes Python look for its packages beside the script.
install() { # install NAME
  local folder=$home/$1 lock=$requirements/$1.txt
  echo "aarch64.sh: making .venv/aarch64/$1 from $1.txt" >&2
  rm -rf "$folder"
  mkdir -p "$folder/bin"
  "$environments/uv/bin/uv" pip sync --quiet --require-hashes --build-constraints "$requirements/build.txt" \
    --python "$environments/$1/bin/python" --python-version "$PYTHON" --python-platform aarch64-manylinux_2_36 \
    --target "$folder/lib/python$PYTHON/site-packages" "$lock" ||
    stop 1 "could not install $1 (see above); the package index must be reachable, over a proxy if HTTPS_PROXY names one"
  echo "home = $home/root/usr/bin" >"$folder/pyvenv.cfg"
  cat >"$folder/bin/python" <<SCRIPT
#!/bin/sh
export REPRO_EMULATOR=qemu-aarch64 # for the record
exec $qemu -L "$home/root" -0 "\$0" "$home/root/usr/bin/python$PYTHON" "\$@"
SCRIPT
  chmod +x "$folder/bin/python"
  cp "$lock" "$folder/installed"
}

[[ $# -gt 0 ]] || stop 2 "nothing to install; name one or more of ${NAMES[*]}"
for name in "$@"; do
  is_one_of "$name" "${NAMES[@]}" || stop 2 "unknown environment '$name'; the names are ${NAMES[*]}"
  [[ -e $environments/$name/installed ]] || stop 1 "first make what it is compared with: requirements/install.sh $name"
done
qemu=$(command -v qemu-aarch64 || command -v qemu-aarch64-static) ||
  stop 1 "no qemu-aarch64 on the PATH; install it (on Debian: apt-get install qemu-user)"
unpack_debian
for name in "$@"; do
  cmp -s "$requirements/$name.txt" "$home/$name/installed" || install "$name"
done
