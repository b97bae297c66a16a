#!/bin/sh
# The console: its types against the server's own description, its tests, and all of it in
# Debian's Chromium: tools/console.sh BINARY
set -eu
binary=$(realpath "$1")
cd "$(dirname "$0")/../console"
chromium=$(command -v chromium || command -v chromium-browser || true)
if test -z "$chromium"; then
  apt-get update -qq && apt-get install -y -qq chromium
  chromium=$(command -v chromium)
fi
npm run --silent api -- "$binary"
npm run --silent check
npm run --silent test
exec timeout 900 node e2e/console.mjs "$binary" "$chromium"
