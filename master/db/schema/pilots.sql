-- core. Jobs of external engines (Slurm) that run agents. Ended ones stay: their ids are never used again.
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
    ended     timestamptz,
    slots     integer,
    used      boolean NOT NULL DEFAULT false
);
CREATE INDEX pilots_live ON pilots (id) WHERE ended IS NULL;
