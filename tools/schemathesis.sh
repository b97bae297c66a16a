#!/bin/sh
# Checks a live server against its OpenAPI description: no status of 500 and above, and no
# status, media type, header or body that is not described. Limited in time, with a fixed seed.
#
#   tools/schemathesis.sh BINARY [SECONDS]
set -eu
cd "$(dirname "$0")/.."
binary=$(realpath "$1")
seconds=${2:-150}
venv=target/tools/schemathesis
data=$(mktemp -d)
server=
trap 'test -z "$server" || kill "$server"; rm -rf "$data"' EXIT

# Install Schemathesis once, and again when its version changes.
if ! cmp -s tools/schemathesis.txt "$venv/installed.txt"; then
  python3 -c 'import venv, ensurepip' 2>/dev/null || { apt-get update -qq && apt-get install -y -qq python3-venv; }
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --requirement tools/schemathesis.txt
  cp tools/schemathesis.txt "$venv/installed.txt"
fi

# Start a server with rows of most kinds, and one run that waits for an approval.
printf 'name: gated\nsteps:\n  - {id: first, command: Say it.}\n  - {id: ask, depends_on: [first], approval: {required: true}}\n' >"$data/gated.lobsterx.yaml"
export SLUICE_DATA="$data/data"
"$binary" apply -f examples/demo/config.yaml >/dev/null
"$binary" run "$data/gated.lobsterx.yaml" --mock examples/demo/answers.yaml --agent mock >/dev/null 2>&1 || test $? -eq 4
SLUICE_LIMITS_RATE_PER_SECOND=1000000 SLUICE_LIMITS_RATE_BURST=1000000 \
  "$binary" serve --listen 127.0.0.1:0 --mock examples/demo/answers.yaml >"$data/out" 2>"$data/err" &
server=$!
tries=0
until grep -q 'serves at' "$data/out"; do
  tries=$((tries + 1))
  test "$tries" -lt 200 && kill -0 "$server" || { cat "$data/err"; exit 1; }
  sleep 0.1
done
address=$(sed -n 's/^sluice serves at //p' "$data/out")
token=$(cat "$SLUICE_DATA/admin.token")
run=$("$binary" runs list --json --limit 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["data"][0]["run_id"])')
approval=$("$binary" approvals list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["data"][0]["approval_id"])')

# Use existing ids, so that not every request ends with 404.
cat >"$data/schemathesis.toml" <<EOF
[[operations]]
include-path-regex = "^/api/v1/runs/"
parameters = { run = "$run", step = "first" }
[[operations]]
include-path-regex = "^/api/v1/approvals/"
parameters = { approval = "$approval" }
[[operations]]
include-path-regex = "^/api/v1/workflows/"
parameters = { name = "vendor-review", version = "1" }
[[operations]]
include-path-regex = "^/api/v1/agents/"
parameters = { name = "analyst" }
[[operations]]
include-path-regex = "^/api/v1/gateways/"
parameters = { name = "demo" }
[[operations]]
include-path-regex = "^/api/v1/budgets/"
parameters = { name = "everything" }
EOF

# Exclude streams, which do not end, and routes that would revoke the token or erase data.
"$venv/bin/schemathesis" --config-file "$data/schemathesis.toml" run "$address/api/v1/openapi.json" \
  --header "Authorization: Bearer $token" \
  --checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance,unsupported_method \
  --exclude-path-regex '/events$|/api/v1/tokens/|/api/v1/elide$|/erase$' \
  --phases examples,coverage,fuzzing --max-examples 20 --max-time "$seconds" --seed 1 \
  --request-timeout 20 --continue-on-failure --warnings off --no-color
kill -0 "$server"
