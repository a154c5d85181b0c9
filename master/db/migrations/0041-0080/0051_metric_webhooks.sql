-- Webhooks are notified of metrics beyond a threshold. The function is described in schema/functions.sql.
ALTER TABLE webhook_triggers DROP CONSTRAINT webhook_triggers_kind_check;
ALTER TABLE webhook_triggers ADD CONSTRAINT webhook_triggers_kind_check
    CHECK (kind IN ('EXPERIMENT_STATE_CHANGE', 'TASK_LOG', 'METRIC_THRESHOLD_EXCEEDED', 'CUSTOM'));
ALTER TABLE webhook_log_matches RENAME TO webhook_matches;
ALTER INDEX webhook_log_matches_pkey RENAME TO webhook_matches_pkey;
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
