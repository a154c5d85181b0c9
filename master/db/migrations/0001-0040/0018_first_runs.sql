-- A trial's first run begins where nothing was reported: the summary of its experiment is not looked for again then,
-- which every submission waited for.
DROP TRIGGER summarize_changed ON trials;
-- After a trial was written, at the end of the transaction, when its validations are there too. A trial that is not the
-- best costs one look.
CREATE OR REPLACE FUNCTION summarize_trial() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE CONSTRAINT TRIGGER summarize_changed AFTER UPDATE ON trials DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (OLD.last_validation <> NEW.last_validation OR OLD.best_metric IS DISTINCT FROM NEW.best_metric
                       OR OLD.ended IS DISTINCT FROM NEW.ended OR OLD.run <> NEW.run AND OLD.run > 0)
    EXECUTE FUNCTION summarize_trial();
