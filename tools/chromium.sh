#!/bin/sh
# Prints the path of Debian's Chromium; installs it if it is missing.
set -eu
find_it() { command -v chromium || command -v chromium-browser; }
find_it || { { apt-get update -qq && apt-get install -y -qq chromium; } >&2; find_it; }
