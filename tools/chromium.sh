#!/bin/sh
# Prints where Debian's Chromium is, and installs it where it is missing.
set -eu
find_it() { command -v chromium || command -v chromium-browser; }
find_it || { { apt-get update -qq && apt-get install -y -qq chromium; } >&2; find_it; }
