#!/bin/sh
# Pictures of every page of the console, of a server with the demo: into console/shots, and
# those that documents show into docs/images. tools/screenshots.sh BINARY
set -eu
binary=$(realpath "$1")
cd "$(dirname "$0")/../console"
chromium=$(command -v chromium || command -v chromium-browser || true)
if test -z "$chromium"; then
  apt-get update -qq && apt-get install -y -qq chromium
  chromium=$(command -v chromium)
fi
exec timeout 600 node e2e/pictures.mjs "$binary" "$chromium" shots ../docs/images
