-- The summary of an experiment has its project and whether it is archived: most searches then read no other table. The
-- table is rebuilt so that columns of fixed width come first: PostgreSQL reads these without decoding the others.
DROP TRIGGER summarize_words ON experiments;
ALTER TABLE experiment_summaries RENAME TO former_summaries;
ALTER TABLE former_summaries DROP CONSTRAINT experiment_summaries_pkey, DROP CONSTRAINT experiment_summaries_experiment_id_fkey;
CREATE TABLE experiment_summaries (
    experiment_id    bigint PRIMARY KEY REFERENCES experiments ON DELETE CASCADE,
    project_id       bigint NOT NULL,
    archived         boolean NOT NULL,
    trials           bigint NOT NULL DEFAULT 0,
    checkpoints      bigint NOT NULL DEFAULT 0,
    checkpoint_bytes bigint NOT NULL DEFAULT 0,
    trial_id         bigint,
    metric           double precision,
    validated        double precision,
    hparams          jsonb,
    validation       jsonb,
    training         jsonb,
    words            text NOT NULL
);
INSERT INTO experiment_summaries
SELECT s.experiment_id, e.project_id, e.archived, s.trials, s.checkpoints, s.checkpoint_bytes, s.trial_id, s.metric,
       s.validated, s.hparams, s.validation, s.training, s.words
  FROM former_summaries s JOIN experiments e ON e.id = s.experiment_id;
DROP TABLE former_summaries;

CREATE OR REPLACE FUNCTION summarize_best(experiment bigint) RETURNS void LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE FUNCTION summarize_trial() RETURNS trigger LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE FUNCTION summarize_experiment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO experiment_summaries (experiment_id, project_id, archived, words)
        VALUES (NEW.id, NEW.project_id, NEW.archived,
                lower(concat_ws(chr(10), NEW.name, NEW.description, array_to_string(NEW.labels, chr(10)))))
        ON CONFLICT (experiment_id) DO UPDATE
            SET project_id = EXCLUDED.project_id, archived = EXCLUDED.archived, words = EXCLUDED.words;
    RETURN NULL;
END
$$;

CREATE TRIGGER summarize_own AFTER UPDATE OF name, description, labels, project_id, archived ON experiments
    FOR EACH ROW EXECUTE FUNCTION summarize_experiment();

-- Number of experiments that are not archived; the newest first; by name.
CREATE INDEX experiments_open ON experiments (project_id) WHERE NOT archived;
CREATE INDEX experiments_newest ON experiments (submitted DESC NULLS LAST, id DESC);
CREATE INDEX experiments_name ON experiments ((lower(name)) COLLATE "C", id DESC) INCLUDE (name, archived, project_id);
