-- Jobs of external engines (Slurm) that run agents.
CREATE TABLE pilots (
    id        bigint PRIMARY KEY,
    name      text NOT NULL UNIQUE,
    pool      text NOT NULL,
    nodes     integer NOT NULL,
    phase     text NOT NULL,
    job       text NOT NULL,
    reason    text NOT NULL,
    until     timestamptz,
    submitted timestamptz NOT NULL,
    ended     timestamptz
);
CREATE INDEX pilots_live ON pilots (id) WHERE ended IS NULL;
