-- Private keys of shells, for clients of SSH. Encrypted. '' for other tasks, and after the end.
ALTER TABLE interactive_tasks ADD ssh_key text NOT NULL DEFAULT '';
CREATE INDEX interactive_tasks_ssh_key ON interactive_tasks (task_id) WHERE ssh_key <> '';
