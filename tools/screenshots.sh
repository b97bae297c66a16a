#!/bin/sh
# Pictures of every page of the console, of a server with the demo: into console/shots, and
# those that documents show into docs/images. tools/screenshots.sh BINARY
set -eu
binary=$(realpath "$1")
chromium=$("$(dirname "$0")/chromium.sh")
cd "$(dirname "$0")/../console"
exec timeout 600 node e2e/pictures.mjs "$binary" "$chromium" shots ../docs/images
