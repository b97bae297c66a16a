#!/bin/sh
# Tests event streams in Debian's Chromium: tools/browser.sh BINARY
set -eu
binary=$(realpath "$1")
chromium=$("$(dirname "$0")/chromium.sh")
cd "$(dirname "$0")/browser"
cmp -s package-lock.json node_modules/.installed || { npm ci --silent && cp package-lock.json node_modules/.installed; }
exec node events.mjs "$binary" "$chromium"
