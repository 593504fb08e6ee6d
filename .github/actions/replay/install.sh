#!/usr/bin/env bash
# Install the Ringleaf that this action is part of, so that the action's version is Ringleaf's, with
# the versions of other packages that it was tested with. Later steps find `ringleaf` on the PATH.
set -euo pipefail
ringleaf=$(cd "$(dirname "$0")/../../.." && pwd)
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "::error::Ringleaf needs Python 3.11 or newer, got $(python3 --version 2>&1); use actions/setup-python before"
  exit 1
fi
python3 -m venv "$RUNNER_TEMP/ringleaf"
"$RUNNER_TEMP/ringleaf/bin/python" -m pip install --quiet --disable-pip-version-check \
  -c "$ringleaf/constraints.txt" "$ringleaf"
echo "$RUNNER_TEMP/ringleaf/bin" >>"$GITHUB_PATH"
