-- Notebooks, shells and TensorBoards, which run as commands.
CREATE TABLE interactive_tasks (
    task_id        text PRIMARY KEY REFERENCES commands (task_id) ON DELETE CASCADE,
    kind           text NOT NULL CHECK (kind IN ('NOTEBOOK', 'SHELL', 'TENSORBOARD')),
    idle_timeout_s bigint NOT NULL DEFAULT 0, -- 0: never ended for being idle
    experiment_ids bigint[] NOT NULL DEFAULT '{}',
    trial_ids      bigint[] NOT NULL DEFAULT '{}'
);
