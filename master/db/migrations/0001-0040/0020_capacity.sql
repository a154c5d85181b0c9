-- Which agents had how many slots when: what usage is a share of.
CREATE TABLE capacity (
    agent_id text NOT NULL,
    pool     text NOT NULL,
    slots    integer NOT NULL,
    started  timestamptz NOT NULL,
    ended    timestamptz
);
CREATE INDEX capacity_time ON capacity USING gist (tstzrange(started, ended));
CREATE INDEX capacity_agent ON capacity (agent_id, started);
