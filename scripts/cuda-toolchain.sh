#!/usr/bin/env bash
# usage: cuda-toolchain.sh VENV WHEEL...
# Make sure that nvcc can be found: an installed one, or the PyPI wheels in a virtual environment.
set -euo pipefail
venv=$1
shift

if [ -n "${NVCC:-}" ] || [ -n "${CUDA_HOME:-}" ] || command -v nvcc >/dev/null; then
    echo "CUDA compiler: ${NVCC:-${CUDA_HOME:-$(command -v nvcc)}}"
    exit 0
fi
if ! compgen -G "$venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc" >/dev/null; then
    if ! python3 -m venv "$venv" 2>/dev/null; then
        sudo=$([ "$(id -u)" = 0 ] || echo sudo)
        $sudo apt-get update -qq
        $sudo apt-get install -y -qq python3-venv >/dev/null
        python3 -m venv "$venv"
    fi
    "$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "$@"
fi
echo "CUDA compiler: $(compgen -G "$venv/lib/python3*/site-packages/nvidia/cu13/bin/nvcc")"
