# `make start` and `make test` work on a Debian machine with Rust and Node. They install
# everything else they need.

CARGO ?= cargo
# Clippy checks the crates of this workspace while they are compiled for the tests, so that
# nothing is compiled a second time only to be checked. A warning is an error.
LINTED = RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS='-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__' $(CARGO)
FUZZ_SECONDS ?= 6
SEED ?= 1
RUNS ?= 1000
SCHEMATHESIS_SECONDS ?= 150
BINARY = $(or $(CARGO_TARGET_DIR),target)/debug/sluice

.PHONY: help cc crates python postgres node binary openapi mcp-client aimock console start test check schemathesis browser console-test screenshots lint fmt bench cluster chaos sim kill changes attack agentdojo dogwood agentdojo-test fuzz fuzz-targets mutants clean

help:
	@echo 'make start    build Sluice and serve a demo; prints the address, the token file and commands to try'
	@echo 'make test     run everything that must pass: lint, check, schemathesis, console-test, agentdojo-test, fuzz'
	@echo 'make check    run the Rust tests, and event streams in a real browser'
	@echo 'make check CRATE=sluice-core  lint and test one crate: the loop while you edit it'
	@echo 'make schemathesis  check a live server against its OpenAPI description'
	@echo 'make browser  test event streams in a real browser while the server is killed'
	@echo 'make console-test  test the console: lint, types, unit tests, end-to-end tests'
	@echo 'make screenshots  write screenshots of every page of the console'
	@echo 'make lint     check formatting and lints'
	@echo 'make fmt      format the Rust source'
	@echo 'make openapi  write docs/openapi.json after a change of the API'
	@echo 'make bench    measure the hot paths'
	@echo 'make cluster  run three nodes on one PostgreSQL while nodes are killed'
	@echo 'make chaos    run the cluster longer, with 2,000 runs and a database failover'
	@echo 'make sim      run the engine under simulated faults: make sim SEED=1 RUNS=10000'
	@echo 'make kill     kill the binary with -9 repeatedly: make kill KILLS=200'
	@echo 'make changes  change the registry and start a run at once, on one node and on three: make changes CHANGES=1000'
	@echo 'make attack   run every attack at full size against a release build, and the tests of the crates they attack'
	@echo 'make agentdojo  run the attacks of AgentDojo on an obedient victim: make agentdojo ARGS=--help'
	@echo 'make agentdojo-test  check the harness of AgentDojo, and run a few attacks'
	@echo 'make dogwood  run the corpus of Dogwood through conditions about history'
	@echo 'make fuzz     fuzz longer: make fuzz FUZZ_SECONDS=600 FUZZ_TARGETS=hook'
	@echo 'make mutants  change each rule of the language and check that a test fails (slow)'

# The build compiles SQLite from source.
cc:
	@command -v cc >/dev/null || { apt-get update -qq && apt-get install -y -qq gcc libc6-dev; }

# The independent verifier of packets is a Python script.
python:
	@command -v python3 >/dev/null || { apt-get update -qq && apt-get install -y -qq python3-minimal; }

# The tests start their own PostgreSQL servers, so only the programs are installed, without a
# default cluster.
postgres:
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || { apt-get update -qq && \
	  mkdir -p /etc/postgresql-common && echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf && \
	  apt-get install -y -qq -o Dpkg::Options::=--force-confold postgresql; }

# Official clients of the Model Context Protocol, for tests of `sluice mcp`.
MCP_CLIENT = target/tools/mcp-client
mcp-client: $(MCP_CLIENT)/.installed

$(MCP_CLIENT)/.installed: tools/mcp-client/package.json tools/mcp-client/package-lock.json | node
	@mkdir -p $(MCP_CLIENT)
	cp $^ $(MCP_CLIENT)/
	cd $(MCP_CLIENT) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# A third-party mock server of the APIs of OpenAI, Anthropic and Gemini.
AIMOCK = target/tools/aimock
aimock: $(AIMOCK)/.installed

$(AIMOCK)/.installed: tools/aimock/package.json tools/aimock/package-lock.json | node
	@mkdir -p $(AIMOCK)
	cp $^ $(AIMOCK)/
	cd $(AIMOCK) && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

node:
	@command -v npm >/dev/null || { apt-get update -qq && apt-get install -y -qq nodejs npm; }

# The pages of the console. The binary embeds them when it is compiled.
console: console/dist/index.html

console/node_modules/.installed: console/package-lock.json | node
	cd console && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# API types for the console, generated from the OpenAPI description. A test keeps the
# description equal to the routes, so this needs no server.
console/src/api/schema.ts: docs/openapi.json console/node_modules/.installed
	cd console && npm run --silent api
	@touch $@

openapi: binary
	$(BINARY) schema openapi > docs/openapi.json

console/dist/index.html: console/node_modules/.installed console/src/api/schema.ts console/index.html console/vite.config.ts $(shell find console/src console/public -type f 2>/dev/null)
	cd console && npm run --silent build -- --logLevel warn
	@touch $@

crates:
	$(CARGO) fetch --quiet --locked --target $$(rustc -vV | sed -n 's/^host: //p')

# The demo: a server whose agents answer from a script.
DEMO = .sluice-demo

# Downloads the crates while npm downloads the packages of the console.
start: cc
	$(MAKE) --no-print-directory -j2 crates console
	$(CARGO) build --profile demo --locked -p sluice
	target/demo/sluice apply -f examples/demo/config.yaml --data $(DEMO)
	@echo
	@echo 'The server runs until Ctrl-C. The console is at http://127.0.0.1:7400; sign in with the token'
	@echo 'in $(DEMO)/admin.token. In another terminal, try:'
	@echo
	@echo '  export SLUICE_URL=http://127.0.0.1:7400 SLUICE_TOKEN=file:$(DEMO)/admin.token PATH=$$PWD/target/demo:$$PATH'
	@echo '  sluice workflows list'
	@echo '  sluice workflows start vendor-review --arg vendor="Northwind Paper"'
	@echo '  sluice runs list'
	@echo '  sluice approvals list        # then: sluice approvals approve apr_…'
	@echo
	target/demo/sluice serve --data $(DEMO) --mock examples/demo/answers.yaml

# The fuzz targets and the client of schemathesis use one core each.
test: lint check console-test fuzz-targets agentdojo-test
	$(MAKE) --no-print-directory -j2 schemathesis fuzz

ifdef CRATE
check: cc
	$(CARGO) fmt -p $(CRATE) --check
	$(LINTED) test --locked -p $(CRATE) $(ARGS)
else
check: cc python postgres mcp-client aimock browser
	$(LINTED) test --workspace --locked
endif

# Builds the binary together with the tests. A separate build would select other features of
# the dependencies and compile all of them twice.
binary: cc
	$(LINTED) test --workspace --locked --no-run

# Checks a live server against its OpenAPI description, for a limited time.
schemathesis: binary python
	tools/schemathesis.sh $(BINARY) $(SCHEMATHESIS_SECONDS)

# Tests event streams in a real browser.
browser: binary node
	tools/browser.sh $(BINARY)

# Tests the console, for a limited time.
console-test: binary console
	tools/console.sh $(BINARY)

# Writes screenshots of every page; docs/images keeps those that documents show.
screenshots: binary console
	tools/screenshots.sh $(BINARY)

lint: cc
	$(CARGO) fmt --all --check
	$(MAKE) binary

fmt:
	$(CARGO) fmt --all

bench:
	$(CARGO) build --release --locked -p bench
	target/release/bench documents
	target/release/bench chain --runs 2000 --steps 10 --concurrency 64
	target/release/bench chain --runs 300 --steps 10 --concurrency 1
	target/release/bench fanout
	target/release/bench parked
	target/release/bench recover
	target/release/bench history
	target/release/bench flat
	target/release/bench http

# Real nodes on a real PostgreSQL, on loopback, with faults. `check` runs a short form.
cluster chaos: cc postgres
	$(CARGO) build --release --locked -p sluice -p bench
	target/release/bench cluster $(if $(filter chaos,$@),--runs 2000 --kills 8 --cuts 8 --pauses 3 --stops 3 --parts 3)
	$(if $(filter chaos,$@),target/release/bench cluster --runs 500 --failovers 1 --kills 0 --restarts 0 --cuts 0 --pauses 0 --stops 0 --parts 0)

# Runs the real engine on a virtual clock: seeds SEED to SEED+RUNS, on every core.
sim:
	SIM_SEED=$(SEED) SIM_RUNS=$(RUNS) $(CARGO) test --profile sim --locked -p sluice-engine --test sim \
	  every_run_ends -- --nocapture

kill:
	KILLS=$(or $(KILLS),200) DISPATCHES=$(or $(DISPATCHES),200) \
	  $(CARGO) test --release --locked -p sluice --test it kill -- --nocapture

# Starts a run directly after each change of the registry, on one node and on three.
changes: cc postgres
	CHANGES=$(or $(CHANGES),1000) $(CARGO) test --release --locked -p sluice --test it registry_changes -- --nocapture

# Runs the attacks at full size on the release binary. `check` runs their short form. The floods
# measure how long other clients wait, so nothing else runs beside them.
attack: cc postgres
	ATTACK=full $(CARGO) test --release --locked -p sluice --test it -- attack:: registry_changes:: injection:: --skip attack::flood:: --nocapture
	ATTACK=full $(CARGO) test --release --locked -p sluice --test it -- attack::flood:: --nocapture --test-threads=1
	$(CARGO) test --release --locked -p sluice-server -p sluice-engine -p sluice-store -p sluice-bridge

# Runs AgentDojo's tasks and attacks through Sluice: tools/agentdojo/README.md.
agentdojo: binary python
	tools/agentdojo.sh $(BINARY) $(ARGS)

# A few of them, and the checks of the harness itself. Takes less than a minute.
agentdojo-test: binary python
	tools/agentdojo.sh --self-test $(BINARY)
# Downloads the corpus of Dogwood (policies about history, traces, verdicts) and judges ours.
dogwood: cc
	CARGO='$(CARGO)' tools/dogwood.sh

# Coverage-guided fuzzing on stable Rust (so without a sanitizer), with the examples as seeds.
# The targets are tests of the workspace, so that they use the dependencies as compiled for the
# tests; only our own crates are compiled again, with coverage counters.
FUZZ_TARGETS = $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
FUZZ_TEST = RUSTC_WORKSPACE_WRAPPER=$(CURDIR)/tools/fuzz-rustc.sh $(CARGO) test --workspace --locked
fuzz: fuzz-targets
	@for target in $(FUZZ_TARGETS); do \
	  mkdir -p fuzz/corpus/$$target fuzz/artifacts/$$target; \
	  $(FUZZ_TEST) --quiet --test $$target -- corpus/$$target seeds/$$target ../examples \
	    -artifact_prefix=artifacts/$$target/ -max_total_time=$(FUZZ_SECONDS) -timeout=5 \
	    -rss_limit_mb=1024 -max_len=4096 -verbosity=0 || exit 1; \
	done

fuzz-targets: cc
	@command -v c++ >/dev/null || { apt-get update -qq && apt-get install -y -qq g++; }
	$(FUZZ_TEST) --no-run $(addprefix --test ,$(FUZZ_TARGETS))

# Mutation tests of the language and the document checks.
mutants:
	@command -v cargo-mutants >/dev/null || $(CARGO) install --locked cargo-mutants
	$(CARGO) mutants -p sluice-core --timeout 60 \
	  -f 'crates/sluice-core/src/{value,merge,args,bounds,path,scope,expr,inputs,outputs,contract,edge,bind}.rs' \
	  -f 'crates/sluice-core/src/{path,scope,expr,outputs,contract,edge,doc}/**' -- --lib

clean:
	$(CARGO) clean
	rm -rf mutants.out* console/dist console/node_modules
