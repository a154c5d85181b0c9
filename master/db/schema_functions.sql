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

-- Recomputes the best-trial columns of experiment_summaries. Only the ordered writer changes trials, so
-- nothing can change between reading and writing.
CREATE FUNCTION summarize_best(experiment bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO experiment_summaries AS s (experiment_id, trial_id, metric, validated, hparams, validation, training)
    SELECT e.id, t.id, t.best_metric, v.searcher_metric, searchable(t.hparams), searchable(v.metrics), searchable(r.metrics)
      FROM experiments e
     CROSS JOIN LATERAL (
           (SELECT * FROM trials WHERE experiment_id = e.id AND best_metric IS NOT NULL AND e.smaller_is_better
             ORDER BY best_metric, id LIMIT 1)
           UNION ALL
           (SELECT * FROM trials WHERE experiment_id = e.id AND best_metric IS NOT NULL AND NOT e.smaller_is_better
             ORDER BY best_metric DESC, id LIMIT 1)
           UNION ALL
           (SELECT * FROM trials WHERE experiment_id = e.id ORDER BY id LIMIT 1)
           LIMIT 1) t
      LEFT JOIN LATERAL (
           SELECT m.metrics, m.searcher_metric, m.steps_completed FROM metrics m
            WHERE m.trial_id = t.id AND m.grp = 'validation' AND NOT m.archived AND m.searcher_metric <> 'NaN'
            ORDER BY CASE WHEN e.smaller_is_better THEN m.searcher_metric ELSE -m.searcher_metric END,
                     m.steps_completed LIMIT 1) v ON true
      LEFT JOIN LATERAL (
           SELECT m.metrics FROM metrics m WHERE m.trial_id = t.id AND m.grp = 'training' AND NOT m.archived
              AND m.steps_completed <= coalesce(v.steps_completed, 9223372036854775807)
            ORDER BY m.steps_completed DESC LIMIT 1) r ON true
     WHERE e.id = experiment
    ON CONFLICT (experiment_id) DO UPDATE SET trial_id = EXCLUDED.trial_id, metric = EXCLUDED.metric,
        validated = EXCLUDED.validated, hparams = EXCLUDED.hparams, validation = EXCLUDED.validation,
        training = EXCLUDED.training;
END
$$;

-- Runs after a trial was written, at the end of the transaction, when its validations are visible as well.
-- Costs one lookup for a trial that is not the best.
CREATE FUNCTION summarize_trial() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was experiment_summaries;
    ends boolean := TG_OP = 'INSERT';
BEGIN
    IF TG_OP = 'INSERT' THEN
        -- The first is the one to show until some have a metric; a new one has none.
        INSERT INTO experiment_summaries AS s (experiment_id, trials, trial_id, hparams)
            VALUES (NEW.experiment_id, 1, NEW.id, searchable(NEW.hparams))
            ON CONFLICT (experiment_id) DO UPDATE SET trials = s.trials + 1,
                trial_id = coalesce(s.trial_id, EXCLUDED.trial_id),
                hparams = CASE WHEN s.trial_id IS NULL THEN EXCLUDED.hparams ELSE s.hparams END;
        IF NEW.best_metric IS NULL THEN
            RETURN NULL;
        END IF;
    ELSE
        ends := OLD.ended IS DISTINCT FROM NEW.ended OR OLD.run <> NEW.run AND OLD.run > 0;
    END IF;
    SELECT * INTO was FROM experiment_summaries WHERE experiment_id = NEW.experiment_id;
    IF was.trial_id IS NULL
       OR was.trial_id = NEW.id AND (ends OR was.metric IS DISTINCT FROM NEW.best_metric
                                     OR was.validated IS DISTINCT FROM NEW.best_metric)
       OR was.trial_id <> NEW.id AND NEW.best_metric IS NOT NULL
          AND (was.metric IS NULL OR CASE WHEN (SELECT smaller_is_better FROM experiments WHERE id = NEW.experiment_id)
                                          THEN (NEW.best_metric, NEW.id) < (was.metric, was.trial_id)
                                          ELSE (-NEW.best_metric, NEW.id) < (-was.metric, was.trial_id) END) THEN
        PERFORM summarize_best(NEW.experiment_id);
    END IF;
    RETURN NULL;
END
$$;

-- Adds the summary of a new experiment.
CREATE FUNCTION summarize_experiment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO experiment_summaries (experiment_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

-- Maintains the counters of completed checkpoints.
CREATE FUNCTION summarize_checkpoint() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    more bigint := (NEW.state = 'COMPLETED')::int;
    bytes bigint := CASE WHEN NEW.state = 'COMPLETED' THEN NEW.size ELSE 0 END;
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.state = 'COMPLETED' THEN
        more := more - 1;
        bytes := bytes - OLD.size;
    END IF;
    UPDATE experiment_summaries SET checkpoints = checkpoints + more, checkpoint_bytes = checkpoint_bytes + bytes
     WHERE experiment_id = (SELECT experiment_id FROM trials WHERE id = NEW.trial_id);
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
