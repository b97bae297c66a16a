#!/bin/sh
# Runs AgentDojo's suites through Sluice with an obedient victim in place of the model: tools/agentdojo/README.md.
#
#   tools/agentdojo.sh BINARY [options of run.py]
#   tools/agentdojo.sh --self-test BINARY
set -eu
cd "$(dirname "$0")/.."
venv=target/tools/agentdojo

# Install AgentDojo once, and again when a version changes.
if ! cmp -s tools/agentdojo/requirements.txt "$venv/installed.txt"; then
  python3 -c 'import venv, ensurepip' 2>/dev/null || { apt-get update -qq && apt-get install -y -qq python3-venv; }
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --requirement tools/agentdojo/requirements.txt
  cp tools/agentdojo/requirements.txt "$venv/installed.txt"
fi

export PYTHONDONTWRITEBYTECODE=1
if test "$1" = --self-test; then
  exec "$venv/bin/python" tools/agentdojo/selftest.py --binary "$2"
fi
binary=$1
shift
exec "$venv/bin/python" tools/agentdojo/run.py --binary "$binary" "$@"
