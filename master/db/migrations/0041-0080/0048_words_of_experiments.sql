-- The words that a text search finds, in lower case, beside the other columns of the table: a search reads no row of
-- experiments, which contain configurations.
ALTER TABLE experiment_summaries ADD COLUMN words text NOT NULL DEFAULT '';

CREATE OR REPLACE FUNCTION summarize_experiment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO experiment_summaries (experiment_id, words)
        VALUES (NEW.id, lower(concat_ws(chr(10), NEW.name, NEW.description, array_to_string(NEW.labels, chr(10)))))
        ON CONFLICT (experiment_id) DO UPDATE SET words = EXCLUDED.words;
    RETURN NULL;
END
$$;
CREATE TRIGGER summarize_words AFTER UPDATE OF name, description, labels ON experiments
    FOR EACH ROW EXECUTE FUNCTION summarize_experiment();

UPDATE experiment_summaries s
   SET words = lower(concat_ws(chr(10), e.name, e.description, array_to_string(e.labels, chr(10))))
  FROM experiments e WHERE e.id = s.experiment_id;
