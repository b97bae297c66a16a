#!/bin/sh
# Tests the console: lint, types against the OpenAPI description, unit tests, and end-to-end
# tests in Debian's Chromium: tools/console.sh BINARY
set -eu
SLUICE_BINARY=$(realpath "$1")
CHROMIUM=$("$(dirname "$0")/chromium.sh")
export SLUICE_BINARY CHROMIUM
cd "$(dirname "$0")/../console"
npm run --silent check
npm run --silent test
timeout 900 npm run --silent e2e -- --project=pages
# Limit the size of the files that a browser loads first.
first=$(cat dist/assets/index-*.gz | wc -c)
echo "first files, compressed: $first bytes (at most 358400)"
test "$first" -le 358400
# Measurements, without parallel tests: a run of 5,000 steps, 100,000 runs.
exec timeout 320 npm run --silent e2e -- --project=speed --workers=1
