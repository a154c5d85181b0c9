#include "determined_tables.h"

namespace det::import {

// The unique index of visible metrics is built after the rows: that is several times faster than maintaining
// it. In the source, a step may be visible in more than one run; only the latest run's stays visible.
const char* const kBeforeCopies = R"(
CREATE TEMPORARY TABLE imported_users (LIKE users) ON COMMIT DROP;
CREATE TEMPORARY TABLE imported_workspaces (LIKE workspaces) ON COMMIT DROP;
CREATE TEMPORARY TABLE imported_projects (LIKE projects) ON COMMIT DROP;
DROP INDEX metrics_visible;
ALTER TABLE metrics DROP CONSTRAINT metrics_pkey;
)";

const char* const kAfterCopies = R"(
ALTER TABLE metrics ADD PRIMARY KEY (trial_id, run, grp, steps_completed);
UPDATE metrics m SET archived = true
  FROM (SELECT trial_id, grp, steps_completed, max(run) AS run FROM metrics WHERE NOT archived
         GROUP BY 1, 2, 3 HAVING count(*) > 1) latest
 WHERE m.trial_id = latest.trial_id AND m.grp = latest.grp AND m.steps_completed = latest.steps_completed
   AND m.run < latest.run AND NOT m.archived;
CREATE UNIQUE INDEX metrics_visible ON metrics (trial_id, grp, steps_completed) WHERE NOT archived;
UPDATE cluster SET last_experiment = greatest(last_experiment, (SELECT coalesce(max(id), 0) FROM experiments)),
                   last_trial = greatest(last_trial, (SELECT coalesce(max(id), 0) FROM trials)),
                   secrets_key = '';
SELECT setval(pg_get_serial_sequence('users', 'id'), (SELECT max(id) FROM users));
SELECT setval(pg_get_serial_sequence('workspaces', 'id'), (SELECT max(id) FROM workspaces));
SELECT setval(pg_get_serial_sequence('projects', 'id'), (SELECT max(id) FROM projects));
SELECT setval(pg_get_serial_sequence('user_groups', 'id'), (SELECT greatest(max(id), 1) FROM user_groups));
SELECT setval(pg_get_serial_sequence('models', 'id'), (SELECT greatest(max(id), 1) FROM models));
SELECT setval(pg_get_serial_sequence('model_versions', 'id'), (SELECT greatest(max(id), 1) FROM model_versions));
)";

namespace {

// Times without a zone are UTC in the source. Sessions of the import have the time zone UTC.

constexpr const char* kUsers = R"(
SELECT u.id, u.username, coalesce(u.display_name, ''), coalesce(u.password_hash, ''),
       coalesce(u.admin, false) OR EXISTS (
           SELECT FROM role_assignments a JOIN user_group_membership m ON m.group_id = a.group_id
             JOIN role_assignment_scopes s ON s.id = a.scope_id
            WHERE m.user_id = u.id AND a.role_id = 1 AND s.scope_workspace_id IS NULL),
       coalesce(u.active, false), coalesce(u.modified_at, now()), u.last_auth_at, g.uid, g.gid, g.user_, g.group_
  FROM users u LEFT JOIN agent_user_groups g ON g.user_id = u.id ORDER BY u.id)";

constexpr const char* kWorkspaces = R"(
SELECT id, name, user_id, archived, created_at, checkpoint_storage_config
  FROM workspaces WHERE state IS DISTINCT FROM 'DELETED')";

constexpr const char* kProjects = R"(
SELECT id, workspace_id, name, coalesce(description, ''), user_id, archived, created_at, key, coalesce(notes, '[]')
  FROM projects WHERE state IS DISTINCT FROM 'DELETED')";

// Without role assignments (the open-source edition) every user may change everything.
// A role of a user is one of its personal group. EditorProjectRestricted and GenAIUser become Viewer.
#define DET_IMPORTED_ROLE                                                                             \
  "CASE a.role_id WHEN 2 THEN 'WORKSPACE_ADMIN' WHEN 3 THEN 'WORKSPACE_CREATOR' WHEN 5 THEN 'EDITOR'" \
  " WHEN 6 THEN 'MODEL_REGISTRY_VIEWER' WHEN 7 THEN 'EDITOR_RESTRICTED' ELSE 'VIEWER' END, "          \
  "s.scope_workspace_id"                                                                              \
  " FROM role_assignments a JOIN groups g ON g.id = a.group_id"                                       \
  " JOIN role_assignment_scopes s ON s.id = a.scope_id WHERE a.role_id BETWEEN 2 AND 9 AND g.user_id IS "
constexpr const char* kGrants =
    "SELECT DISTINCT g.user_id, " DET_IMPORTED_ROLE
    "NOT NULL UNION ALL"
    " SELECT id, 'EDITOR', NULL FROM users WHERE NOT EXISTS (SELECT FROM role_assignments)";
constexpr const char* kGroups = "SELECT id, group_name FROM groups WHERE user_id IS NULL";
constexpr const char* kGroupMembers = R"(
SELECT DISTINCT m.group_id, m.user_id FROM user_group_membership m JOIN groups g ON g.id = m.group_id
 WHERE g.user_id IS NULL)";
constexpr const char* kGroupGrants = "SELECT DISTINCT a.group_id, " DET_IMPORTED_ROLE "NULL";
#undef DET_IMPORTED_ROLE

// Rows with the ids of the first start are updated. The first user keeps its password, and stays an
// administrator.
constexpr const char* kMergeUsers = R"(
INSERT INTO users (id, name, display_name, password_hash, admin, active, created, last_auth, agent_uid, agent_gid,
                   agent_user, agent_group)
SELECT id, name, display_name, password_hash, admin, active, created, last_auth, agent_uid, agent_gid, agent_user,
       agent_group FROM imported_users ORDER BY id
ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, display_name = EXCLUDED.display_name, admin = true, active = true,
    created = EXCLUDED.created, last_auth = EXCLUDED.last_auth, agent_uid = EXCLUDED.agent_uid,
    agent_gid = EXCLUDED.agent_gid, agent_user = EXCLUDED.agent_user, agent_group = EXCLUDED.agent_group)";
constexpr const char* kMergeWorkspaces = R"(
INSERT INTO workspaces (id, name, owner_id, archived, created, checkpoint_storage)
SELECT id, name, owner_id, archived, created, checkpoint_storage FROM imported_workspaces ORDER BY id
ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, owner_id = EXCLUDED.owner_id, archived = EXCLUDED.archived,
    created = EXCLUDED.created, checkpoint_storage = EXCLUDED.checkpoint_storage)";
constexpr const char* kMergeProjects = R"(
INSERT INTO projects (id, workspace_id, name, description, owner_id, archived, created, key, notes)
SELECT id, workspace_id, name, description, owner_id, archived, created, key, notes FROM imported_projects ORDER BY id
ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, description = EXCLUDED.description, owner_id = EXCLUDED.owner_id,
    archived = EXCLUDED.archived, created = EXCLUDED.created, key = EXCLUDED.key, notes = EXCLUDED.notes)";

constexpr const char* kTemplates = "SELECT name, jsonb_pretty(config), workspace_id FROM templates";

constexpr const char* kCodeArchives = R"(
SELECT encode(sha256(model_definition), 'hex'), model_definition, length(model_definition), start_time
  FROM experiments WHERE length(model_definition) > 0
   AND id IN (SELECT min(id) FROM experiments GROUP BY sha256(model_definition)))";

constexpr const char* kExperiments = R"(
SELECT id, '', job_id, owner_id, project_id,
       CASE WHEN state IN ('COMPLETED', 'CANCELED', 'ERROR') THEN state::text ELSE 'CANCELED' END,
       config, coalesce(original_config, jsonb_pretty(config)),
       CASE WHEN length(model_definition) > 0 THEN encode(sha256(model_definition), 'hex') ELSE '' END,
       coalesce(progress, CASE state WHEN 'COMPLETED' THEN 1 ELSE 0 END), start_time,
       coalesce(end_time, now()), parent_id, 0, left(coalesce(config ->> 'name', ''), 256),
       coalesce(config ->> 'description', ''),
       CASE jsonb_typeof(config -> 'labels') WHEN 'array'
            THEN ARRAY(SELECT jsonb_array_elements_text(config -> 'labels')) ELSE '{}' END,
       notes, archived, coalesce(config #>> '{resources,resource_pool}', ''),
       coalesce(config #>> '{searcher,name}', ''), coalesce(config #>> '{searcher,metric}', ''),
       coalesce((config #>> '{searcher,smaller_is_better}')::boolean, true), unmanaged
  FROM experiments ORDER BY id)";

constexpr const char* kTrainingMetrics = R"(
SELECT trial_id, trial_run_id, 'training', total_batches, coalesce(end_time, now()),
       coalesce(metrics -> 'avg_metrics', metrics, '{}'), NULL, archived FROM raw_steps)";

constexpr const char* kValidationMetrics = R"(
SELECT v.trial_id, v.trial_run_id, 'validation', v.total_batches, coalesce(v.end_time, now()),
       coalesce(v.metrics -> 'validation_metrics', v.metrics -> 'avg_metrics', v.metrics, '{}'),
       CASE WHEN jsonb_typeof(v.metrics -> 'validation_metrics' -> e.metric) = 'number'
              OR v.metrics -> 'validation_metrics' ->> e.metric IN ('NaN', 'Infinity', '-Infinity')
            THEN (v.metrics -> 'validation_metrics' ->> e.metric)::float8 END,
       v.archived
  FROM raw_validations v JOIN runs r ON r.id = v.trial_id
  JOIN (SELECT id, config #>> '{searcher,metric}' AS metric FROM experiments) e ON e.id = r.experiment_id)";

constexpr const char* kOtherMetrics = R"(
SELECT trial_id, trial_run_id, metric_group, total_batches, coalesce(end_time, now()),
       coalesce(metrics -> 'avg_metrics', metrics, '{}'), NULL, archived FROM generic_metrics)";

constexpr const char* kTrials = R"(
WITH first_tasks AS (SELECT run_id, min(task_id) AS task_id FROM run_id_task_id GROUP BY 1),
     saved AS (
         SELECT DISTINCT ON (p.run_id) p.run_id, c.uuid, coalesce((c.metadata ->> 'steps_completed')::bigint, 0) AS steps
           FROM run_checkpoints p JOIN checkpoints_v2 c ON c.uuid = p.checkpoint_id AND c.state = 'COMPLETED'
          ORDER BY p.run_id, 3 DESC, c.report_time DESC),
     validated AS (
         SELECT trial_id, max(total_batches) AS steps, max(trial_run_id) AS run FROM raw_validations
          WHERE NOT archived GROUP BY 1),
     failed AS (
         SELECT DISTINCT ON (p.run_id) p.run_id, a.exit_error FROM run_id_task_id p
           JOIN allocations a ON a.task_id = p.task_id AND a.exit_error IS NOT NULL
          ORDER BY p.run_id, a.start_time DESC NULLS LAST)
SELECT r.id, r.experiment_id, coalesce(v.request_id, r.external_run_id, 'imported ' || r.id),
       coalesce(k.task_id, ''), v.seed, r.hparams,
       CASE WHEN r.state IN ('COMPLETED', 'CANCELED', 'ERROR') THEN r.state::text ELSE 'CANCELED' END,
       greatest(r.restart_id, l.run, 0), r.restarts, coalesce(s.uuid::text, ''), coalesce(s.steps, 0), r.total_batches,
       coalesce(l.steps, 0), 0, coalesce(l.steps, 0), nullif(r.searcher_metric_value, 'NaN'), false,
       CASE r.state WHEN 'COMPLETED' THEN 1 ELSE 0 END,
       CASE r.state WHEN 'ERROR' THEN coalesce(f.exit_error, '') ELSE '' END, r.start_time, coalesce(r.end_time, r.last_activity, now())
  FROM runs r JOIN trials_v2 v ON v.run_id = r.id LEFT JOIN first_tasks k ON k.run_id = r.id
  LEFT JOIN saved s ON s.run_id = r.id LEFT JOIN validated l ON l.trial_id = r.id
  LEFT JOIN failed f ON f.run_id = r.id ORDER BY r.id)";

constexpr const char* kMetadata = "SELECT run_id, metadata FROM runs_metadata WHERE metadata IS NOT NULL";

constexpr const char* kCheckpoints = R"(
SELECT c.uuid, p.run_id, coalesce(substring(c.allocation_id FROM '\.([0-9]{1,9})$')::integer, 0), coalesce(c.task_id, ''),
       coalesce(c.allocation_id, ''), c.state, coalesce((c.metadata ->> 'steps_completed')::bigint, 0),
       coalesce(c.resources, '{}'), coalesce(c.metadata, '{}'), c.size, c.report_time
  FROM checkpoints_v2 c JOIN (SELECT checkpoint_id, min(run_id) AS run_id FROM run_checkpoints GROUP BY 1) p
    ON p.checkpoint_id = c.uuid)";

constexpr const char* kModels = R"(
SELECT m.id, m.name, coalesce(m.description, ''), coalesce(m.metadata, '{}'), coalesce(m.labels, '{}'),
       coalesce(m.notes, ''), m.workspace_id, m.user_id, m.archived,
       coalesce((SELECT max(v.version) FROM model_versions v WHERE v.model_id = m.id), 0), m.creation_time,
       coalesce(m.last_updated_time, m.creation_time)
  FROM models m)";

constexpr const char* kModelVersions = R"(
SELECT v.id, v.model_id, v.version, v.checkpoint_uuid, coalesce(v.name, ''), coalesce(v.comment, ''),
       coalesce(v.notes, ''), coalesce(v.metadata, '{}'), coalesce(v.labels, '{}'), coalesce(v.user_id, m.user_id),
       v.creation_time, coalesce(v.last_updated_time, v.creation_time)
  FROM model_versions v JOIN models m ON m.id = v.model_id
 WHERE EXISTS (SELECT FROM run_checkpoints p WHERE p.checkpoint_id = v.checkpoint_uuid))";

// The usage of trials. Allocations of commands and notebooks are not imported.
constexpr const char* kAllocations = R"(
SELECT a.allocation_id, p.run_id, coalesce(substring(a.allocation_id FROM '\.([0-9]{1,9})$')::integer, 0), 'TERMINATED',
       a.resource_pool, false, false, false, false, coalesce(a.start_time, t.start_time),
       coalesce(a.end_time, t.end_time, a.start_time, t.start_time),
       CASE WHEN a.exit_error IS NULL AND coalesce(a.status_code, 0) = 0 THEN 'SUCCEEDED' ELSE 'FAILED' END,
       coalesce(a.status_code, 0), coalesce(a.exit_error, a.exit_reason, ''), '[]', a.slots
  FROM allocations a JOIN tasks t ON t.task_id = a.task_id
  JOIN (SELECT task_id, min(run_id) AS run_id FROM run_id_task_id GROUP BY 1) p ON p.task_id = a.task_id)";

constexpr const char* kLogs = R"(
SELECT l.task_id, coalesce(l.allocation_id, ''), coalesce(l.agent_id, ''), coalesce(l.rank_id, 0),
       coalesce(l.timestamp, t.start_time), coalesce(l.level, ''), coalesce(l.stdtype, ''), coalesce(l.source, ''),
       CASE WHEN length(l.log) > 0 AND get_byte(l.log, length(l.log) - 1) = 10
            THEN substring(l.log FROM 1 FOR length(l.log) - 1) ELSE l.log END
  FROM task_logs l JOIN tasks t ON t.task_id = l.task_id
 WHERE EXISTS (SELECT FROM run_id_task_id p WHERE p.task_id = l.task_id) ORDER BY l.id)";

// Trials of early releases have their logs in a table of their own.
constexpr const char* kOldLogs = R"(
SELECT p.task_id, '', coalesce(l.agent_id, ''), coalesce(l.rank_id, 0), coalesce(l.timestamp, r.start_time),
       coalesce(l.level, ''), coalesce(l.stdtype, ''), coalesce(l.source, ''),
       CASE WHEN length(line) > 0 AND get_byte(line, length(line) - 1) = 10
            THEN substring(line FROM 1 FOR length(line) - 1) ELSE line END
  FROM trial_logs l CROSS JOIN LATERAL (SELECT coalesce(l.log, l.message) AS line) text
  JOIN runs r ON r.id = l.trial_id
  JOIN (SELECT run_id, min(task_id) AS task_id FROM run_id_task_id GROUP BY 1) p ON p.run_id = r.id ORDER BY l.id)";

constexpr const char* kMetricColumns =
    "trial_id, run, grp, steps_completed, reported, metrics, searcher_metric, archived";
constexpr const char* kLogColumns =
    "task_id, allocation_id, agent_id, rank, time, level, stdtype, source, log";

}  // namespace

const std::vector<TableCopy>& table_copies() {
  static const std::vector<TableCopy> all = {
      {"users", "imported_users",
       "id, name, display_name, password_hash, admin, active, created, last_auth, agent_uid, agent_gid, "
       "agent_user,"
       " agent_group",
       kUsers, false, kMergeUsers},
      {"workspaces", "imported_workspaces", "id, name, owner_id, archived, created, checkpoint_storage",
       kWorkspaces, false, kMergeWorkspaces},
      {"projects", "imported_projects",
       "id, workspace_id, name, description, owner_id, archived, created, key, notes", kProjects, false,
       kMergeProjects},
      {"roles", "grants", "user_id, role, workspace_id", kGrants},
      {"user groups", "user_groups", "id, name", kGroups},
      {"members of groups", "group_members", "group_id, user_id", kGroupMembers},
      {"roles of groups", "group_grants", "group_id, role, workspace_id", kGroupGrants},
      {"templates", "templates", "name, text, workspace_id", kTemplates},
      {"code archives", "model_definitions", "sha256, tgz, size, created", kCodeArchives},
      {"experiments", "experiments",
       "id, request_id, job_id, owner_id, project_id, state, config, original_config, model_definition, "
       "progress,"
       " submitted, ended, parent_id, searcher_events, name, description, labels, notes, archived, "
       "resource_pool,"
       " searcher_name, searcher_metric, smaller_is_better, detached",
       kExperiments},
      {"training metrics", "metrics", kMetricColumns, kTrainingMetrics},
      {"validation metrics", "metrics", kMetricColumns, kValidationMetrics},
      {"other metrics", "metrics", kMetricColumns, kOtherMetrics},
      {"trials", "trials",
       "id, experiment_id, request_id, task_id, seed, hparams, state, run, restarts, latest_checkpoint, "
       "latest_steps,"
       " steps_completed, last_validation, checkpoint_validation, searcher_steps, best_metric,"
       " early_exit_invalid_hp, progress, exit_reason, started, ended",
       kTrials},
      {"metadata of trials", "run_metadata", "trial_id, metadata", kMetadata},
      {"checkpoints", "checkpoints",
       "uuid, trial_id, run, task_id, allocation_id, state, steps_completed, resources, metadata, size, "
       "reported",
       kCheckpoints},
      {"models", "models",
       "id, name, description, metadata, labels, notes, workspace_id, owner_id, archived, last_version, "
       "created,"
       " changed",
       kModels},
      {"model versions", "model_versions",
       "id, model_id, version, checkpoint_uuid, name, comment, notes, metadata, labels, owner_id, created, "
       "changed",
       kModelVersions},
      {"allocations", "allocations",
       "id, trial_id, run, state, pool, attached, preempt_requested, preempt_acknowledged, kill_requested, "
       "started,"
       " ended, exit_kind, exit_code, exit_message, parts, slots",
       kAllocations},
      {"log lines", "task_logs", kLogColumns, kLogs, true},
      {"log lines of early releases", "task_logs", kLogColumns, kOldLogs, true},
  };
  return all;
}

}  // namespace det::import
