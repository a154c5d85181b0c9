-- Commands: the first tasks beside trials. Their allocations lie with those of the trials.
CREATE TABLE commands (
    id             bigint PRIMARY KEY,
    task_id        text NOT NULL UNIQUE,
    job_id         text NOT NULL,
    owner_id       bigint NOT NULL REFERENCES users,
    workspace_id   bigint NOT NULL REFERENCES workspaces,
    state          text NOT NULL CHECK (state IN ('ACTIVE', 'STOPPING_KILLED', 'COMPLETED', 'CANCELED', 'ERROR')),
    config         json NOT NULL,
    description    text NOT NULL,
    context        text NOT NULL,
    resource_pool  text NOT NULL,
    priority       integer NOT NULL,
    weight         double precision NOT NULL,
    max_slots      integer,
    queue_position bigint NOT NULL,
    submitted      timestamptz NOT NULL,
    ended          timestamptz,
    exit_kind      text CHECK (exit_kind IN ('SUCCEEDED', 'FAILED', 'LOST', 'STOPPED')),
    exit_code      integer,
    exit_message   text
);
CREATE INDEX commands_live ON commands (id) WHERE ended IS NULL;

ALTER TABLE allocations ALTER COLUMN trial_id DROP NOT NULL;
ALTER TABLE allocations ADD COLUMN command_id bigint REFERENCES commands;
ALTER TABLE allocations ADD CONSTRAINT allocations_of_one CHECK ((trial_id IS NULL) <> (command_id IS NULL));
CREATE INDEX allocations_command ON allocations (command_id) WHERE command_id IS NOT NULL;
