-- Functions of the schema; a readable view of what the migrations create. Comments inside the function bodies
-- are part of the stored definitions and must equal those of the migrations.
SET check_function_bodies = off;

-- Text that regular expressions match: the line as UTF-8, or with its bytes escaped when it is not UTF-8.
CREATE FUNCTION log_text(log bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN convert_from(log, 'UTF8');
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN encode(log, 'escape');
END
$$;

-- Value that searches compare; NULL where jsonb cannot hold it (a NUL, a number beyond numeric). Such an
-- experiment is still listed, but not found by this value.
CREATE FUNCTION searchable(value json) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN value::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded OR statement_too_complex THEN
    RETURN NULL;
END
$$;

-- Whether a webhook applies to an experiment of this workspace and configuration.
CREATE FUNCTION webhook_applies(hook bigint, name text, mode text, scope bigint, workspace bigint, config json) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(config #>> '{integrations,webhooks,exclude}', 'false') <> 'true'
       AND (scope IS NULL OR scope = workspace)
       AND (mode = 'WORKSPACE'
            OR coalesce((config #> '{integrations,webhooks,webhook_id}')::jsonb @> to_jsonb(hook), false)
            OR coalesce((config #> '{integrations,webhooks,webhook_name}')::jsonb @> to_jsonb(name), false))
$$;

-- Queues the events of a report of metrics in the transaction that stores it: one for each rule that a value breaks for the
-- first time in a trial. A rule is a trigger's condition, {"metric": NAME, "above" or "below": NUMBER}. NaN is above each
-- number.
CREATE FUNCTION queue_metric_webhooks(of_trial bigint, of_group text, at_batches bigint, reported json) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM webhook_triggers WHERE kind = 'METRIC_THRESHOLD_EXCEEDED') THEN
        RETURN;
    END IF;
    WITH rules AS (
        SELECT id, webhook_id, condition::json AS rule, reported -> (condition::json ->> 'metric') AS value
          FROM webhook_triggers WHERE kind = 'METRIC_THRESHOLD_EXCEEDED'
    ), numbers AS (
        SELECT id, webhook_id, rule,
               CASE WHEN json_typeof(value) = 'number' OR value #>> '{}' IN ('NaN', 'Infinity', '-Infinity')
                    THEN (value #>> '{}')::double precision END AS value
          FROM rules
    ), broken AS (
        SELECT n.*, r.task_id, e.id AS experiment
          FROM numbers n JOIN webhooks w ON w.id = n.webhook_id
          JOIN trials r ON r.id = of_trial JOIN experiments e ON e.id = r.experiment_id JOIN projects p ON p.id = e.project_id
         WHERE (n.value > (n.rule ->> 'above')::double precision OR n.value < (n.rule ->> 'below')::double precision)
           AND webhook_applies(w.id, w.name, w.mode, w.workspace_id, p.workspace_id, e.config)
    ), first AS (
        INSERT INTO webhook_matches (task_id, trigger_id) SELECT task_id, id FROM broken
        ON CONFLICT DO NOTHING RETURNING trigger_id
    )
    INSERT INTO webhook_events (webhook_id, kind, experiment_id, event)
    SELECT b.webhook_id, 'METRIC_THRESHOLD_EXCEEDED', b.experiment,
           json_build_object('rule', b.rule, 'trial_id', of_trial, 'group', of_group, 'total_batches', at_batches, 'value', b.value)
      FROM broken b JOIN first f ON f.trigger_id = b.id ORDER BY b.id;
END
$$;

-- Queues the events of a new state in the transaction that stores the state.
CREATE FUNCTION queue_state_webhooks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhook_events (webhook_id, kind, experiment_id, event)
    SELECT w.id, t.kind, NEW.id, json_build_object('state', NEW.state)
      FROM webhook_triggers t JOIN webhooks w ON w.id = t.webhook_id
     WHERE t.kind = 'EXPERIMENT_STATE_CHANGE' AND t.condition = NEW.state
       AND webhook_applies(w.id, w.name, w.mode, w.workspace_id,
                           (SELECT workspace_id FROM projects WHERE id = NEW.project_id), NEW.config)
     ORDER BY t.id;
    RETURN NULL;
END
$$;
