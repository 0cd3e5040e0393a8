#!/usr/bin/env bash
# The Python package as users get it: the wheel in a fresh environment, its types, its tests.
set -eu
cd "$(dirname "$0")/.."
ci/wheel.sh
python=target/python-test/bin/python
python3 -m venv --clear target/python-test
extras='pandas,polars,pyarrow,matplotlib,cloudpickle'
"$python" -m pip install --quiet "$(echo target/wheels/cobre_sddp-*.whl)[$extras]" \
    pytest mypy nbclient ipykernel scipy
export PYTHONDONTWRITEBYTECODE=1
cd crates/cobre-python
../../"$python" -m mypy --strict --cache-dir=/dev/null -p cobre
../../"$python" -m mypy.stubtest cobre --mypy-config-file pyproject.toml
exec ../../"$python" -m pytest
