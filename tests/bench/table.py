#!/usr/bin/env python3
"""The table of the web UI over 100,000 experiments of one trial each: sorting, filtering, paging. Milliseconds of
the master's answer over HTTP, the median of five after a first one. tests/bench/table.py BUILD_DIR [ROWS]"""
import json
import pathlib
import statistics
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from cluster import Cluster  # noqa: E402
from ingest import database_of  # noqa: E402

CONFIG = """
name: stored
entrypoint: ['true']
hyperparameters: {lr: {type: double, minval: 0, maxval: 1}, layers: 2}
searcher: {name: single, metric: loss, max_length: {batches: 100}}
"""
# Copies of the first experiment and its trial with other values in some columns. Without triggers, so that the
# summaries are computed once.
FILL = """
SET session_replication_role = replica;
DO $$ DECLARE one experiments; run trials; BEGIN
  SELECT * INTO one FROM experiments WHERE id = 1;
  SELECT * INTO run FROM trials WHERE experiment_id = 1;
  FOR i IN 2..{rows} LOOP
    one.id = i; one.request_id = 'stored' || i; one.job_id = gen_random_uuid();
    one.name = (ARRAY['resnet', 'mnist', 'transformer', 'baseline'])[1 + i % 4] || ' run ' || (i::bigint * 7919) % 100003;
    one.description = 'sweep ' || i / 100; one.labels = ARRAY['team-' || i % 10];
    one.state = (ARRAY['COMPLETED', 'COMPLETED', 'COMPLETED', 'ERROR'])[1 + i % 4]; one.progress = 1;
    one.submitted = now() - i * interval '1 minute'; one.ended = one.submitted + (i * 31 % 5000) * interval '1 second';
    INSERT INTO experiments VALUES (one.*);
    run.id = i; run.experiment_id = i; run.request_id = gen_random_uuid(); run.task_id = i || '.' || run.request_id;
    run.hparams = json_build_object('lr', (i::bigint * 104729 % 100003) / 1e6, 'layers', i % 8, 'opt',
                                    (ARRAY['adam', 'sgd'])[1 + i % 2]);
    run.state = one.state; run.ended = one.ended; run.run = 1; run.best_metric = (i::bigint * 31337 % 99991) / 1e5;
    run.steps_completed = 100;
    INSERT INTO trials VALUES (run.*);
  END LOOP;
END $$;
INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics, searcher_metric)
  SELECT id, 1, 'validation', 100, now(), json_build_object('loss', best_metric, 'accuracy', 1 - best_metric), best_metric
  FROM trials WHERE id > 1;
INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics)
  SELECT id, 1, 'training', 100, now(), json_build_object('loss', best_metric / 2) FROM trials WHERE id > 1;
RESET session_replication_role;
INSERT INTO experiment_summaries AS s (experiment_id, project_id, archived, trials, words)
  SELECT e.id, e.project_id, e.archived, 1, lower(concat_ws(chr(10), e.name, e.description, e.labels[1])) FROM experiments e
  ON CONFLICT (experiment_id) DO UPDATE SET words = EXCLUDED.words;
SELECT count(summarize_best(experiment_id)) FROM experiment_summaries;
VACUUM ANALYZE;
"""


def field(column, operator, value):
    return {"kind": "field", "columnName": column, "operator": operator, "value": value}


def searches(rows):
    """Name and request of each figure."""
    middle = rows // 2

    def where(*fields):
        return json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": fields}})
    return {
        "newest": {"sort": "startTime=desc"},
        "sorted_by_name": {"sort": "name=asc"},
        "sorted_by_name_from_its_end": {"sort": "name=desc"},
        "page_in_the_middle_by_name": {"sort": "name=asc", "offset": middle},
        "sorted_by_hyperparameter": {"sort": "hp.lr=asc"},
        "sorted_by_metric": {"sort": "validation.accuracy=desc"},
        "page_in_the_middle_by_metric": {"sort": "validation.accuracy=desc", "offset": middle},
        "sorted_by_duration": {"sort": "duration=desc"},
        "with_text": {"sort": "startTime=desc", "text": "former run 99"},
        "with_query": {"sort": "startTime=desc", "filter": where(field("hp.lr", "<", 0.01), field("state", "=", "COMPLETED"))},
        "with_query_sorted_by_metric": {"sort": "validation.loss=asc", "filter": where(field("hp.layers", "=", 3))},
    }


def figure(name, value, unit, bound):
    print(f"{name} {value:.4g} {unit} <={bound:g} {'ok' if value <= bound else 'short'}", flush=True)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with Cluster(build) as cluster:
        cluster.create(ROOT / "tests" / "e2e" / "fixtures" / "tiny", CONFIG)
        cluster.det("experiment", "kill", "1")
        subprocess.run(["psql", database_of(cluster), "-q", "-o", "/dev/null", "-v", "ON_ERROR_STOP=1"], text=True,
                       check=True, input=FILL.format(rows=rows))
        password = (cluster.dir / "master" / "admin-password").read_text().strip()

        def call(path, body, token=None):
            headers = {"Content-Type": "application/json"} | ({"Authorization": "Bearer " + token} if token else {})
            request = urllib.request.Request(f"http://127.0.0.1:{cluster.port}{path}", json.dumps(body).encode(), headers)
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)

        token = call("/api/v1/auth/login", {"username": "admin", "password": password})["token"]
        for name, search in searches(rows).items():
            took = []
            for _ in range(6):
                begin = time.monotonic()
                found = call("/api/v1/experiments-search", {"limit": 50, **search}, token)
                took.append((time.monotonic() - begin) * 1e3)
            assert len(found["experiments"]) == 50, (name, found["pagination"])
            figure(f"table_{rows}_{name}", statistics.median(took[1:]), "ms", 100)


main()
