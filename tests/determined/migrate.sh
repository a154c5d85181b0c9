#!/usr/bin/env bash
# Imports a database with the real schema of Determined AI 0.38 and compares the numbers of rows.
# Usage: DET_UPSTREAM=REPOSITORY tests/determined/migrate.sh BUILD [EXPERIMENTS [STEPS]]
# REPOSITORY: git repository of determined-ai/determined; its own migrations make the schema. STEPS: training reports
# of a trial. Needs the server programs of PostgreSQL. Exit code 1 if a number differs.
set -euo pipefail
build=$(realpath "$1")
experiments=${2:-40} steps=${3:-30}
here=$(realpath "$(dirname "$0")")
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
work=$(mktemp -d)
as=()
[ "$(id -u)" != 0 ] || { chown postgres "$work"; chmod 711 "$work"; as=(setpriv --reuid postgres --regid postgres --clear-groups); }
cd "$work"
stop() { "${as[@]}" "$bin/pg_ctl" -D "$work/pg" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$work"; }
trap stop EXIT
"${as[@]}" "$bin/initdb" -D "$work/pg" -A trust -U postgres >/dev/null
"${as[@]}" "$bin/pg_ctl" -D "$work/pg" -o "-k $work -c listen_addresses='' -c fsync=off -c max_wal_size=4GB" -l "$work/pg/log" -w start >/dev/null
source_url="host=$work user=postgres dbname=postgres"
run_sql() { psql "$source_url" -v ON_ERROR_STOP=1 -q "$@" >/dev/null; }

git -C "$DET_UPSTREAM" archive HEAD master/static/migrations master/static/views_and_triggers | tar x
run_sql -c 'CREATE TABLE gopg_migrations (id serial, version bigint, created_at timestamptz DEFAULT now())'
for file in master/static/migrations/*.up.sql; do
  version=$(basename "$file")
  run_sql -1 -f "$file" -c "INSERT INTO gopg_migrations (version) VALUES (${version%%_*})" 2>>errors || { tail -3 errors; exit 1; }
done
run_sql -c 'CREATE SCHEMA IF NOT EXISTS determined_code'
for file in master/static/views_and_triggers/up/*.sql; do run_sql -1 -f "$file"; done
# bcrypt of the form in which clients send "lovelace-1843".
run_sql -v "experiments=$experiments" -v "steps=$steps" -v 'ada_hash=$2a$10$abcdefghijklmnopqrstuueqSyVQLAitN0oOXB7CJEo71nM23tq96' \
  -f "$here/migrate_rows.sql"

started=$SECONDS
"$build/bin/det-master" migrate from-determined "$source_url" --data-dir "$work/cluster" --log-level warn | tee report
echo "imported in $((SECONDS - started)) s"
failed=0
expect() {
  if grep -qE "^ +$1  $2\$" report; then echo "ok    $1 $2"; else echo "FAIL  $1 $2"; failed=1; fi
}
expect 5 users
expect 1 'roles'
expect 1 'user groups'
expect 2 'members of groups'
expect 2 'roles of groups'
expect "$experiments" experiments
expect "$experiments" trials
expect "$experiments" checkpoints
expect $((experiments * steps + 1)) 'training metrics'
expect $((experiments * (steps / 10))) 'validation metrics'
expect 1 'model versions'
expect 100 'log lines'
exit $failed
