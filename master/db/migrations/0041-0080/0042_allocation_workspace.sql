-- Workspace of the experiment or command when the allocation started: its usage counts there.
ALTER TABLE allocations ADD workspace_id bigint NOT NULL DEFAULT 1;
UPDATE allocations a SET workspace_id = p.workspace_id
    FROM trials t JOIN experiments e ON e.id = t.experiment_id JOIN projects p ON p.id = e.project_id
    WHERE t.id = a.trial_id;
UPDATE allocations a SET workspace_id = c.workspace_id FROM commands c WHERE c.id = a.command_id;
