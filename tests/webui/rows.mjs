// Generated rows in the database of a test's master: copies of its first experiment and trial, series of a
// million points, logs of a million lines, checkpoints.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { cluster } from './driver.mjs';

export const LONG_TRIAL = 800_000;
const POINTS = 1_000_000;

export function sql(text) {
  const socket = path.join(cluster.directory, 'master/postgres/socket');
  return execFileSync('psql', ['-qAt', '-v', 'ON_ERROR_STOP=1', '-h', socket, '-U', 'det', '-c', text, 'det'], {
    encoding: 'utf8',
  }).trim();
}

// Copies the first experiment's row, or its trial's, with other values in some columns.
export function copies(table, values, from) {
  const columns = sql(
    `SELECT string_agg(column_name, ',' ORDER BY ordinal_position) FROM information_schema.columns
     WHERE table_name = '${table}'`,
  ).split(',');
  const parts = columns.map((name) => values[name] ?? `r.${name}`);
  return `INSERT INTO ${table} (${columns}) SELECT ${parts} FROM ${table} r, ${from} WHERE r.id = 1;`;
}

// Inserts many rows at once. Runs without triggers and computes their summaries afterwards.
export const putMany = (rows) =>
  sql(
    `SET session_replication_role = replica; ${rows} RESET session_replication_role;
     INSERT INTO experiment_summaries AS s (experiment_id, project_id, archived, trials, words)
     SELECT e.id, e.project_id, e.archived, count(t.id), lower(concat_ws(chr(10), e.name, e.description, array_to_string(e.labels, chr(10))))
     FROM experiments e LEFT JOIN trials t ON t.experiment_id = e.id GROUP BY e.id
     ON CONFLICT (experiment_id) DO UPDATE SET trials = EXCLUDED.trials, words = EXCLUDED.words;
     SELECT count(summarize_best(experiment_id)) FROM experiment_summaries`,
  );

export const longTrial = () =>
  copies(
    'trials',
    { id: `${LONG_TRIAL}`, request_id: `'long'`, task_id: `'long'`, state: `'COMPLETED'`, ended: 'now()' },
    'generate_series(1, 1) n',
  ) +
  `INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics)
   SELECT ${LONG_TRIAL}, 1, 'training', n, now() - interval '1 day' + n * interval '50 milliseconds',
     json_build_object('loss', CASE WHEN n = 654321 THEN 77 ELSE 2.0 / (1 + n / 50000.0) + sin(n) / 20 END)
   FROM generate_series(1, ${POINTS}) n;
   INSERT INTO task_logs (task_id, allocation_id, agent_id, rank, time, level, stdtype, source, log)
   SELECT 'long', 'long.1', 'vm', n % 4, now() - interval '1 day' + n * interval '1 millisecond',
     CASE WHEN n % 100000 = 0 THEN 'ERROR' ELSE 'INFO' END, 'stdout', 'task', convert_to('line ' || n, 'UTF8')
   FROM generate_series(1, ${POINTS}) n;`;

// `trials` trials of one experiment, each with a loss at `points` batches, at 10 batches a second.
export const curves = (experiment, trials, points) =>
  copies(
    'experiments',
    {
      id: `${experiment}`,
      request_id: `''`,
      name: `'many curves'`,
      state: `'COMPLETED'`,
      searcher_name: `'random'`,
      ended: 'now()',
    },
    'generate_series(1, 1) n',
  ) +
  copies(
    'trials',
    {
      id: `${experiment} + n`,
      experiment_id: `${experiment}`,
      request_id: `'c' || n`,
      task_id: `'curve-' || n`,
      hparams: `json_build_object('lr', n / 100.0)`,
      state: `'COMPLETED'`,
      steps_completed: `${points}`,
      best_metric: `n / 1000.0`,
      ended: 'now()',
    },
    `generate_series(0, ${trials - 1}) n`,
  ) +
  `INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics)
   SELECT ${experiment} + n, 1, 'training', s, now() - interval '1 day' + s * interval '100 milliseconds',
     json_build_object('loss', 2.0 / (1 + s / 500.0) + n / 100.0 + sin(s * (n + 1)) / 50)
   FROM generate_series(0, ${trials - 1}) n, generate_series(1, ${points}) s;`;

// A checkpoint of the first trial at 10 batches with one file in the storage and the given metadata.
export function saved(uuid, metadata) {
  const place = path.join(cluster.directory, 'checkpoints', uuid);
  mkdirSync(place);
  writeFileSync(path.join(place, 'weights.pt'), 'weights');
  const text = JSON.stringify(metadata).replace(/'/g, "''");
  sql(`INSERT INTO checkpoints (uuid, trial_id, run, task_id, allocation_id, steps_completed, resources, metadata,
         size, reported)
       SELECT '${uuid}', 1, 1, t.task_id, a.id, 10, '{"weights.pt": 7, "<img src=x>": 0}', '${text}', 7, now()
       FROM allocations a JOIN trials t ON t.id = a.trial_id WHERE t.id = 1 ORDER BY a.run LIMIT 1`);
}
