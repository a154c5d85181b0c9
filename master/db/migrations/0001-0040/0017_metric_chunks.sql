-- Long series packed, so that a chart of a million points is answered by a master that has just started.
CREATE TABLE metric_chunks (
    trial_id    bigint NOT NULL,
    grp         text NOT NULL,
    first_steps bigint NOT NULL,
    last_steps  bigint NOT NULL,
    extremes    bytea NOT NULL,
    points      bytea NOT NULL,
    PRIMARY KEY (trial_id, grp, first_steps)
);
ALTER TABLE metric_chunks ALTER COLUMN extremes SET STORAGE EXTERNAL, ALTER COLUMN points SET STORAGE EXTERNAL;
