#!/bin/sh
# Screenshots of every page of the console, of a server with the demo: into console/shots, and
# those that documents show into docs/images. tools/screenshots.sh BINARY
set -eu
SLUICE_BINARY=$(realpath "$1")
CHROMIUM=$("$(dirname "$0")/chromium.sh")
export SLUICE_BINARY CHROMIUM
cd "$(dirname "$0")/../console"
exec timeout 640 npm run --silent e2e -- --project=screenshots
