-- Commands that users pause: their state, and the run of their allocation.
ALTER TABLE commands DROP CONSTRAINT commands_state_check;
ALTER TABLE commands ADD CONSTRAINT commands_state_check
    CHECK (state IN ('ACTIVE', 'PAUSED', 'STOPPING_KILLED', 'COMPLETED', 'CANCELED', 'ERROR'));
ALTER TABLE commands ADD run integer NOT NULL DEFAULT 1;
ALTER TABLE generic_tasks ADD no_pause boolean NOT NULL DEFAULT false;
