#!/bin/sh
# Compiles a crate of this workspace with coverage counters for libFuzzer:
# RUSTC_WORKSPACE_WRAPPER=tools/fuzz-rustc.sh. Cargo compiles the dependencies without it, so
# fuzzing shares them with the tests. A little optimisation makes up for the counters.
set -eu
case " $* " in
*" --crate-name build_script_"* | *" --crate-name ___ "*) exec "$@" ;;
*" --crate-name "*) ;;
*) exec "$@" ;;
esac
# Optimisation alone would switch off the checks of the profile for tests.
exec "$@" --cfg fuzzing -Copt-level=1 -Cdebug-assertions=on -Coverflow-checks=on -Cpasses=sancov-module \
  -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
  -Cllvm-args=-sanitizer-coverage-stack-depth -Cllvm-args=-simplifycfg-branch-fold-threshold=0
