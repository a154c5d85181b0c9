-- Submissions of generic tasks, which run as commands. Written by commands.
CREATE TABLE generic_tasks (
    task_id     text PRIMARY KEY REFERENCES commands (task_id) ON DELETE CASCADE,
    config      text NOT NULL,  -- as submitted, YAML
    forked_from text NOT NULL DEFAULT '',
    no_pause    boolean NOT NULL DEFAULT false  -- may not be paused
);
-- Notebooks, shells and TensorBoards, which run as commands. Written by the API.
CREATE TABLE interactive_tasks (
    task_id        text PRIMARY KEY REFERENCES commands (task_id) ON DELETE CASCADE,
    kind           text NOT NULL CHECK (kind IN ('NOTEBOOK', 'SHELL', 'TENSORBOARD')),
    idle_timeout_s bigint NOT NULL DEFAULT 0, -- 0: never ended for being idle
    experiment_ids bigint[] NOT NULL DEFAULT '{}',
    trial_ids      bigint[] NOT NULL DEFAULT '{}',
    ssh_key        text NOT NULL DEFAULT ''  -- private key of a shell, until its end
);
CREATE INDEX interactive_tasks_ssh_key ON interactive_tasks (task_id) WHERE ssh_key <> '';

-- Days after the end of a trial until its log is deleted, where a user has set them. -1: never. Written by logs.
CREATE TABLE log_retention (
    trial_id bigint PRIMARY KEY REFERENCES trials ON DELETE CASCADE,
    days     integer NOT NULL
);
