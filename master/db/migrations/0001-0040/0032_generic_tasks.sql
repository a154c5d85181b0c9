-- Submissions of generic tasks, which run as commands.
CREATE TABLE generic_tasks (
    task_id     text PRIMARY KEY REFERENCES commands (task_id) ON DELETE CASCADE,
    config      text NOT NULL,
    forked_from text NOT NULL DEFAULT ''
);
