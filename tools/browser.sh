#!/bin/sh
# What only a browser can show, in Debian's Chromium: tools/browser.sh BINARY
set -eu
binary=$(realpath "$1")
cd "$(dirname "$0")/browser"
chromium=$(command -v chromium || command -v chromium-browser || true)
if test -z "$chromium"; then
  apt-get update -qq && apt-get install -y -qq chromium
  chromium=$(command -v chromium)
fi
cmp -s package-lock.json node_modules/.installed || { npm ci --silent && cp package-lock.json node_modules/.installed; }
exec node events.mjs "$binary" "$chromium"
