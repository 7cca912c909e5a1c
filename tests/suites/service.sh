# For the suites beside it: a folder of their own, and a service with the demo in it. Sourced, not run.
# A suite ends with 0 when all is well, 1 when not, 77 when it could not run here, and then it says why.

skip() {
  printf '\nSKIPPED: %s\n\n' "$1" >&2
  exit 77
}

suites=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$suites/../.." && pwd)
work=$(mktemp -d)
service=
trap '[ -z "$service" ] || kill "$service" 2>/dev/null || true; rm -rf "$work"' EXIT

# The first argument of a suite is a Python that has graphsvc; left out, the one of the checkout.
python=${1:-$root/.venv/bin/python}
python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python")
"$python" -c 'import graphsvc' 2>/dev/null || { echo "$python has no graphsvc" >&2; exit 1; }
export GRAPHSVC_HOME=$work/home

start() { # a service with the demo, at $url with $token
  "$python" -m graphsvc demo >/dev/null 2>&1
  GRAPHSVC_LOG=error "$python" -m graphsvc serve --port 0 --ready-file "$work/ready.json" --log "$work/log.jsonl" 2>/dev/null &
  service=$!
  for _ in $(seq 300); do
    [ ! -s "$work/ready.json" ] || break
    sleep 0.1
  done
  [ -s "$work/ready.json" ] || { echo 'the service did not start' >&2; exit 1; }
  url=$("$python" -c 'import json, sys; print(json.load(open(sys.argv[1]))["url"])' "$work/ready.json")/graphql
  token=$(cat "$GRAPHSVC_HOME/token")
}

finish() { # end the service; it must still be there, and have logged no bug
  kill "$service" 2>/dev/null || { echo 'the service is gone' >&2; exit 1; }
  wait "$service" || { echo "the service ended with $?" >&2; exit 1; }
  service=
  if [ -s "$work/log.jsonl" ]; then
    echo 'the service logged errors:' >&2
    cat "$work/log.jsonl" >&2
    exit 1
  fi
}

npm_install() { # the packages of the lock in a folder (left out, of this one), into $work
  for program in node npm; do
    [ -n "$(command -v "$program")" ] || skip "there is no $program"
  done
  cp "${1:-$suites}"/{package.json,package-lock.json} "$suites"/.npmrc "$suites"/*.mjs "$work"
  (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --silent) || skip 'npm could not install the packages'
}
