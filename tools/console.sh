#!/bin/sh
# The console: its types against the description of the API, its tests, and all of it in
# Debian's Chromium: tools/console.sh BINARY
set -eu
binary=$(realpath "$1")
chromium=$("$(dirname "$0")/chromium.sh")
cd "$(dirname "$0")/../console"
npm run --silent check
npm run --silent test
timeout 900 node e2e/console.mjs "$binary" "$chromium"
# What a browser loads before it shows anything.
first=$(cat dist/assets/index-*.gz | wc -c)
echo "first files, compressed: $first bytes (at most 358400)"
test "$first" -le 358400
# What it is measured by: a run of 5,000 steps, and the list of 100,000 runs.
timeout 200 node e2e/large.mjs "$binary" "$chromium" 5000 10
exec timeout 120 node e2e/many.mjs "$binary" "$chromium"
