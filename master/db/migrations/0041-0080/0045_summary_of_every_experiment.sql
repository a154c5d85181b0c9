-- An experiment without trials has a summary too: the table joins both without an outer join, which would compare
-- conditions on hyperparameters and metrics after the join.
CREATE FUNCTION summarize_experiment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO experiment_summaries (experiment_id) VALUES (NEW.id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER summarize_new AFTER INSERT ON experiments FOR EACH ROW EXECUTE FUNCTION summarize_experiment();
CREATE OR REPLACE FUNCTION summarize_trial() RETURNS trigger LANGUAGE plpgsql AS $$
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

INSERT INTO experiment_summaries (experiment_id) SELECT id FROM experiments ON CONFLICT DO NOTHING;
