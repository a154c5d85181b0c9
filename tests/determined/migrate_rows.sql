-- Rows of a used cluster for a database with the schema of Determined AI 0.38.
-- Variables: experiments (their number), steps (training reports of a trial; a tenth as many validations).
-- The password of user "ada" is "lovelace-1843".
BEGIN;
UPDATE users SET display_name = 'Head' WHERE id = 1;
INSERT INTO users (id, username, password_hash, admin, active, display_name) VALUES
    (3, 'ada', :'ada_hash', false, true, 'Ada'), (4, 'grace', NULL, false, true, NULL),
    (5, 'gone', NULL, false, false, NULL);
INSERT INTO groups (id, group_name, user_id) VALUES (10, 'ada personal', 3), (11, 'researchers', NULL);
INSERT INTO user_group_membership (user_id, group_id) VALUES (3, 10), (3, 11), (4, 11);
INSERT INTO agent_user_groups (user_id, user_, uid, group_, gid) VALUES (3, 'ada', 1003, 'staff', 50);
INSERT INTO workspaces (id, name, user_id, checkpoint_storage_config)
    VALUES (2, 'Vision', 3, '{"type": "shared_fs", "host_path": "/tmp", "storage_path": "vision"}'), (3, 'Old', 1, NULL);
UPDATE workspaces SET state = 'DELETED' WHERE id = 3;
INSERT INTO projects (id, name, workspace_id, user_id, notes, key)
    VALUES (2, 'Digits', 2, 3, '[{"name": "plan", "contents": "# Plan"}]', 'DIG');
INSERT INTO role_assignment_scopes (id, scope_workspace_id) VALUES (10, NULL), (11, 2);
INSERT INTO role_assignments (group_id, role_id, scope_id) VALUES (10, 5, 11), (11, 4, 10), (11, 7, 11);
INSERT INTO templates (name, config, workspace_id) VALUES ('small', '{"resources": {"slots_per_trial": 1}}', 2);
INSERT INTO jobs (job_id, job_type, owner_id) SELECT 'job-' || i, 'EXPERIMENT', 3 FROM generate_series(1, :experiments) i;
INSERT INTO experiments (id, state, config, model_definition, start_time, end_time, archived, owner_id, progress,
                         original_config, notes, job_id, project_id)
SELECT i, (CASE WHEN i % 10 = 9 THEN 'ERROR' WHEN i % 10 = 8 THEN 'ACTIVE' ELSE 'COMPLETED' END)::experiment_state,
       jsonb_build_object('name', 'run ' || i, 'description', 'a' || chr(9) || '\tab', 'labels', '["old", "mnist"]'::jsonb,
           'entrypoint', 'python3 train.py', 'hyperparameters', '{"lr": {"type": "const", "val": 0.1}}'::jsonb,
           'searcher', '{"name": "single", "metric": "loss", "smaller_is_better": true, "max_length": {"batches": 100}}'::jsonb,
           'resources', '{"resource_pool": "default", "slots_per_trial": 1}'::jsonb, 'max_restarts', 5,
           'checkpoint_storage', '{"type": "s3", "bucket": "b", "access_key": "AKIAOLD", "secret_key": "old-secret-key"}'::jsonb,
           'environment', '{"environment_variables": {"cpu": [], "cuda": [], "rocm": []}}'::jsonb),
       decode('1f8b080000000000000303000000000000000000', 'hex'), timestamptz '2024-01-01' + i * interval '1 minute',
       CASE WHEN i % 10 <> 8 THEN timestamptz '2024-01-01' + (i + 60) * interval '1 minute' END, i % 7 = 0, 3,
       1, 'name: run ' || i || E'\n# a comment\n', 'note ' || i, 'job-' || i, CASE WHEN i % 2 = 0 THEN 1 ELSE 2 END
  FROM generate_series(1, :experiments) i;
INSERT INTO runs (id, experiment_id, state, start_time, end_time, hparams, restart_id, restarts, total_batches, project_id,
                  searcher_metric_value)
SELECT i, i, (CASE WHEN i % 10 = 9 THEN 'ERROR' WHEN i % 10 = 8 THEN 'ACTIVE' ELSE 'COMPLETED' END)::trial_state,
       timestamptz '2024-01-01' + i * interval '1 minute', timestamptz '2024-01-01' + (i + 60) * interval '1 minute',
       jsonb_build_object('lr', 0.1 * i), 1, 1, :steps * 10, CASE WHEN i % 2 = 0 THEN 1 ELSE 2 END,
       CASE WHEN i % 11 = 0 THEN 'NaN' ELSE 1.0 / i END
  FROM generate_series(1, :experiments) i;
INSERT INTO trials_v2 (run_id, request_id, seed) SELECT i, gen_random_uuid(), i FROM generate_series(1, :experiments) i;
INSERT INTO tasks (task_id, task_type, start_time, job_id, log_version)
SELECT i || '.task', 'TRIAL', timestamp '2024-01-01' + i * interval '1 minute', 'job-' || i, 1
  FROM generate_series(1, :experiments) i;
INSERT INTO tasks (task_id, task_type, start_time) VALUES ('a-notebook', 'NOTEBOOK', '2024-01-01');
INSERT INTO run_id_task_id (run_id, task_id) SELECT i, i || '.task' FROM generate_series(1, :experiments) i;
INSERT INTO allocations (task_id, allocation_id, resource_pool, start_time, end_time, slots, state, exit_error, status_code)
SELECT i || '.task', i || '.task.1', 'default', timestamp '2024-01-01' + i * interval '1 minute',
       timestamp '2024-01-01' + (i + 60) * interval '1 minute', 2, 'TERMINATED',
       CASE WHEN i % 10 = 9 THEN 'container failed with non-zero exit code: 1' END, CASE WHEN i % 10 = 9 THEN 1 END
  FROM generate_series(1, :experiments) i;
INSERT INTO raw_steps (trial_id, end_time, metrics, total_batches, trial_run_id, archived)
SELECT i, timestamptz '2024-01-01' + (i * 60 + s) * interval '1 second',
       jsonb_build_object('avg_metrics', jsonb_build_object('loss', 1.0 / s, 'accuracy', 'NaN')), s * 10,
       CASE WHEN s <= 2 THEN 0 ELSE 1 END, s <= 2
  FROM generate_series(1, :experiments) i, generate_series(1, :steps) s;
-- A step that two runs report, both visible.
INSERT INTO raw_steps (trial_id, end_time, metrics, total_batches, trial_run_id, archived)
    VALUES (1, now(), '{"avg_metrics": {"loss": 0.75}}', 30, 2, false);
INSERT INTO raw_validations (trial_id, end_time, metrics, total_batches, trial_run_id, archived)
SELECT i, timestamptz '2024-01-01' + (i * 60 + s) * interval '1 second',
       jsonb_build_object('validation_metrics', jsonb_build_object('loss', 2.0 / s + 1.0 / i)), s * 100, 1, false
  FROM generate_series(1, :experiments) i, generate_series(1, :steps / 10) s;
INSERT INTO generic_metrics (trial_id, end_time, metrics, total_batches, trial_run_id, metric_group)
    VALUES (1, now(), '{"avg_metrics": {"bleu": 0.5}}', 10, 1, 'inference');
INSERT INTO runs_metadata (run_id, metadata) VALUES (1, '{"note": {"deep": "x"}}');
INSERT INTO checkpoints_v2 (uuid, task_id, allocation_id, report_time, state, resources, metadata, size)
SELECT md5('c' || i)::uuid, i || '.task', i || '.task.1', now(), 'COMPLETED', '{"state.bin": 123}',
       jsonb_build_object('steps_completed', :steps * 10), 123
  FROM generate_series(1, :experiments) i;
INSERT INTO run_checkpoints (run_id, checkpoint_id) SELECT i, md5('c' || i)::uuid FROM generate_series(1, :experiments) i;
INSERT INTO models (id, name, description, creation_time, last_updated_time, metadata, labels, user_id, workspace_id)
    VALUES (4, 'digits', 'reads digits', now(), now(), '{"k": 1}', '{a,b}', 3, 2);
INSERT INTO model_versions (model_id, version, checkpoint_uuid, creation_time, last_updated_time, metadata, user_id)
    VALUES (4, 3, md5('c1')::uuid, now(), now(), '{}', 3);
INSERT INTO task_logs (task_id, allocation_id, agent_id, rank_id, source, stdtype, level, timestamp, log)
SELECT '1.task', '1.task.1', 'agent', 0, 'task', 'stdout', 'INFO', timestamp '2024-01-01 00:01:00' + s * interval '1 second',
       convert_to('line ' || s || E' \\ tab\t' || chr(10), 'UTF8')
  FROM generate_series(1, 100) s;
INSERT INTO task_logs (task_id, log) VALUES ('a-notebook', 'hello');
COMMIT;
