-- What tables of experiments show and sort by, kept beside each experiment: looked up for 100,000 of them it took a
-- second.
CREATE TABLE experiment_summaries (
    experiment_id    bigint PRIMARY KEY REFERENCES experiments ON DELETE CASCADE,
    trials           bigint NOT NULL DEFAULT 0,
    checkpoints      bigint NOT NULL DEFAULT 0,  -- completed ones
    checkpoint_bytes bigint NOT NULL DEFAULT 0,
    trial_id         bigint,            -- the best trial, the first while none has a metric
    metric           double precision,  -- its best searcher metric
    validated        double precision,  -- that of `validation`: another once the best one was rolled back
    hparams          jsonb,
    validation       jsonb,             -- its metrics at its best
    training         jsonb              -- as last reported up to then
);
CREATE INDEX trials_best ON trials (experiment_id, best_metric, id);
-- What searches compare, out of what was reported or configured; NULL where jsonb cannot hold it (a NUL, a number
-- beyond what numeric holds): such an experiment is shown all the same and only not found by it.
CREATE FUNCTION searchable(value json) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN value::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded OR statement_too_complex THEN
    RETURN NULL;
END
$$;
-- Writes what experiment_summaries holds of an experiment's best trial anew. The ordered writer is the only one that
-- changes trials, so nothing comes between reading and writing.
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
-- After a trial was written, at the end of the transaction, when its validations are there too. A trial that is not the
-- best costs one look.
CREATE FUNCTION summarize_trial() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    was experiment_summaries;
    ends boolean := TG_OP = 'INSERT';
BEGIN
    IF TG_OP = 'INSERT' THEN
        -- The first is the one to show until some have a metric; a new one has none.
        INSERT INTO experiment_summaries AS s (experiment_id, trials, trial_id, hparams)
            VALUES (NEW.experiment_id, 1, NEW.id, searchable(NEW.hparams))
            ON CONFLICT (experiment_id) DO UPDATE SET trials = s.trials + 1;
        IF NEW.best_metric IS NULL THEN
            RETURN NULL;
        END IF;
    ELSE
        ends := OLD.ended IS DISTINCT FROM NEW.ended OR OLD.run <> NEW.run;
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
CREATE CONSTRAINT TRIGGER summarize_new AFTER INSERT ON trials DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION summarize_trial();
CREATE CONSTRAINT TRIGGER summarize_changed AFTER UPDATE ON trials DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.last_validation <> NEW.last_validation OR OLD.best_metric IS DISTINCT FROM NEW.best_metric
                       OR OLD.ended IS DISTINCT FROM NEW.ended OR OLD.run <> NEW.run)
    EXECUTE FUNCTION summarize_trial();
-- Only what counts as a checkpoint of the experiment: the completed ones.
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
CREATE CONSTRAINT TRIGGER summarize_new AFTER INSERT ON checkpoints DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.state = 'COMPLETED') EXECUTE FUNCTION summarize_checkpoint();
CREATE CONSTRAINT TRIGGER summarize_changed AFTER UPDATE ON checkpoints DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.state <> NEW.state OR OLD.size <> NEW.size) EXECUTE FUNCTION summarize_checkpoint();
-- Those that are there.
INSERT INTO experiment_summaries (experiment_id, trials, checkpoints, checkpoint_bytes)
SELECT t.experiment_id, count(DISTINCT t.id), count(k.uuid), coalesce(sum(k.size), 0)
  FROM trials t LEFT JOIN checkpoints k ON k.trial_id = t.id AND k.state = 'COMPLETED' GROUP BY t.experiment_id;
DO $$ BEGIN PERFORM summarize_best(experiment_id) FROM experiment_summaries; END $$;
ALTER TABLE run_metadata ADD COLUMN searchable jsonb GENERATED ALWAYS AS (searchable(metadata)) STORED;
