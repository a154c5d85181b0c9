-- Usage accounting: how many slots an allocation holds, found by the time in which it held them; and what is left of
-- experiments that were deleted.
ALTER TABLE allocations ADD COLUMN slots integer NOT NULL DEFAULT 0;
UPDATE allocations SET slots = (SELECT coalesce(sum(json_array_length(part -> 'slots')), 0)
                                FROM json_array_elements(parts) AS part);
CREATE INDEX allocations_time ON allocations
    USING gist (tstzrange(started, greatest(started, coalesce(ended, 'infinity')))) WHERE slots > 0;

CREATE TABLE past_usage (
    experiment_id bigint NOT NULL,
    owner_id      bigint NOT NULL REFERENCES users,
    workspace_id  bigint NOT NULL,
    labels        text[] NOT NULL,
    pool          text NOT NULL,
    slots         integer NOT NULL,
    started       timestamptz NOT NULL,
    ended         timestamptz NOT NULL
);
CREATE INDEX past_usage_time ON past_usage USING gist (tstzrange(started, ended));
