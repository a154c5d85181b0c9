-- What became of experiments after they were made: ids stay used when rows are deleted, and runs carry what people note.
ALTER TABLE cluster ADD COLUMN last_experiment bigint NOT NULL DEFAULT 0;
ALTER TABLE cluster ADD COLUMN last_trial bigint NOT NULL DEFAULT 0;
CREATE TABLE run_metadata (
    trial_id bigint PRIMARY KEY REFERENCES trials ON DELETE CASCADE,
    metadata json NOT NULL
);
