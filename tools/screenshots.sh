#!/bin/sh
# Writes screenshots of every page of the console, with the demo, to console/shots, and the
# images of documents to docs/images: tools/screenshots.sh BINARY
set -eu
SLUICE_BINARY=$(realpath "$1")
CHROMIUM=$("$(dirname "$0")/chromium.sh")
export SLUICE_BINARY CHROMIUM
cd "$(dirname "$0")/../console"
exec timeout 640 npm run --silent e2e -- --project=screenshots
