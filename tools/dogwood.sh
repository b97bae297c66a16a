#!/bin/sh
# Downloads the corpus of Dogwood from crates.io, and runs it through our conditions about
# history: policies, traces of events, and the verdict at each request. Nothing of it is kept
# in the repository.
set -eu
version=${DOGWOOD_VERSION:-1.1.0}
root=$(cd "$(dirname "$0")/.." && pwd)
place=$root/target/dogwood
mkdir -p "$place/src"
: > "$place/src/lib.rs"
cat > "$place/Cargo.toml" <<EOF
[package]
name = "dogwood-corpus"
version = "0.0.0"
edition = "2024"

[dependencies]
dogwood-language = "=$version"

[workspace]
EOF
cargo fetch --quiet --manifest-path "$place/Cargo.toml"
manifest=$(cargo metadata --format-version 1 --manifest-path "$place/Cargo.toml" \
  | grep -o '"manifest_path":"[^"]*/dogwood-language-[^"]*"' | head -1 | cut -d'"' -f4)
DOGWOOD_CORPUS=$(dirname "$manifest")/tests/passing/temporal_only
export DOGWOOD_CORPUS
cd "$root"
exec ${CARGO:-cargo} test --locked -p sluice-govern --lib -- --ignored --nocapture \
  verdicts_are_those_of_the_corpus
