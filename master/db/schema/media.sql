-- Media that trials report per step. The contents are files in the checkpoint storage. Written by media.
CREATE TABLE media (
    trial_id        bigint NOT NULL REFERENCES trials ON DELETE CASCADE,
    name            text NOT NULL,
    steps_completed bigint NOT NULL CHECK (steps_completed >= 0),
    kind            text NOT NULL CHECK (kind IN ('IMAGE', 'HISTOGRAM', 'TEXT', 'TABLE', 'FILE')),
    caption         text NOT NULL,
    digest          text NOT NULL,   -- SHA-256 of the content, hexadecimal
    size            bigint NOT NULL, -- of the content, in bytes
    file_name       text NOT NULL,   -- in downloads
    reported        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (trial_id, name, steps_completed)
);
CREATE INDEX media_digest ON media (trial_id, digest);
