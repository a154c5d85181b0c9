-- Columns that lists of experiments show and sort by, one row for each experiment. Written by triggers on
-- experiments, trials and checkpoints, in the transaction of the change.
CREATE TABLE experiment_summaries (
    experiment_id    bigint PRIMARY KEY REFERENCES experiments ON DELETE CASCADE,
    project_id       bigint NOT NULL,   -- of the experiment, like archived and words
    archived         boolean NOT NULL,
    trials           bigint NOT NULL DEFAULT 0,
    checkpoints      bigint NOT NULL DEFAULT 0,  -- completed ones
    checkpoint_bytes bigint NOT NULL DEFAULT 0,
    trial_id         bigint,            -- the best trial; the first while none has a metric
    metric           double precision,  -- its best searcher metric
    validated        double precision,  -- metric of `validation`; differs after a rollback of the best
    hparams          jsonb,
    validation       jsonb,             -- metrics of its best validation
    training         jsonb,             -- last training metrics up to then
    words            text NOT NULL      -- name, description and labels of the experiment in lower case
);

-- Recomputes the best-trial columns of experiment_summaries. Only the ordered writer changes trials, so
-- nothing can change between reading and writing.
CREATE FUNCTION summarize_best(experiment bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE experiment_summaries s
       SET trial_id = t.id, metric = t.best_metric, validated = v.searcher_metric, hparams = searchable(t.hparams),
           validation = searchable(v.metrics), training = searchable(r.metrics)
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
     WHERE e.id = experiment AND s.experiment_id = e.id;
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
        UPDATE experiment_summaries s
           SET trials = s.trials + 1, trial_id = coalesce(s.trial_id, NEW.id),
               hparams = CASE WHEN s.trial_id IS NULL THEN searchable(NEW.hparams) ELSE s.hparams END
         WHERE s.experiment_id = NEW.experiment_id;
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

-- Adds the summary of a new experiment, or changes the columns that are the experiment's own.
CREATE FUNCTION summarize_experiment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO experiment_summaries (experiment_id, project_id, archived, words)
        VALUES (NEW.id, NEW.project_id, NEW.archived,
                lower(concat_ws(chr(10), NEW.name, NEW.description, array_to_string(NEW.labels, chr(10)))))
        ON CONFLICT (experiment_id) DO UPDATE
            SET project_id = EXCLUDED.project_id, archived = EXCLUDED.archived, words = EXCLUDED.words;
    RETURN NULL;
END
$$;

-- Maintains the counters of completed checkpoints.
CREATE FUNCTION summarize_checkpoint() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    more bigint := (NEW.state = 'COMPLETED')::int;
    bytes numeric := CASE WHEN NEW.state = 'COMPLETED' THEN NEW.size ELSE 0 END;
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.state = 'COMPLETED' THEN
        more := more - 1;
        bytes := bytes - OLD.size;
    END IF;
    -- An error here would end the writer. A sum beyond 64 bits stays at their maximum.
    UPDATE experiment_summaries SET checkpoints = checkpoints + more,
           checkpoint_bytes = least(greatest(checkpoint_bytes + bytes, 0), 9223372036854775807)::bigint
     WHERE experiment_id = (SELECT experiment_id FROM trials WHERE id = NEW.trial_id);
    RETURN NULL;
END
$$;

CREATE TRIGGER summarize_new AFTER INSERT ON experiments FOR EACH ROW EXECUTE FUNCTION summarize_experiment();
CREATE TRIGGER summarize_own AFTER UPDATE OF name, description, labels, project_id, archived ON experiments
    FOR EACH ROW EXECUTE FUNCTION summarize_experiment();
CREATE CONSTRAINT TRIGGER summarize_new AFTER INSERT ON trials DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION summarize_trial();
CREATE CONSTRAINT TRIGGER summarize_changed AFTER UPDATE ON trials DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.last_validation <> NEW.last_validation OR OLD.best_metric IS DISTINCT FROM NEW.best_metric
                       OR OLD.ended IS DISTINCT FROM NEW.ended OR OLD.run <> NEW.run AND OLD.run > 0)
    EXECUTE FUNCTION summarize_trial();
CREATE CONSTRAINT TRIGGER summarize_new AFTER INSERT ON checkpoints DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.state = 'COMPLETED') EXECUTE FUNCTION summarize_checkpoint();
CREATE CONSTRAINT TRIGGER summarize_changed AFTER UPDATE ON checkpoints DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.state <> NEW.state OR OLD.size <> NEW.size) EXECUTE FUNCTION summarize_checkpoint();
