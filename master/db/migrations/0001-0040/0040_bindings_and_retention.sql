-- User and group of the tasks of a workspace: {uid, user} and {gid, group}, each pair or none.
ALTER TABLE workspaces ADD agent_account json;

-- Pools that run work of these workspaces only.
CREATE TABLE pool_bindings (
    pool         text NOT NULL,
    workspace_id bigint NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    PRIMARY KEY (pool, workspace_id)
);
CREATE INDEX pool_bindings_workspace ON pool_bindings (workspace_id);

-- Days after the end of a trial until its log is deleted, where a user has set them. -1: never.
CREATE TABLE log_retention (
    trial_id bigint PRIMARY KEY REFERENCES trials ON DELETE CASCADE,
    days     integer NOT NULL
);

-- Projects that users looked at.
CREATE TABLE project_visits (
    user_id    bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    project_id bigint NOT NULL REFERENCES projects ON DELETE CASCADE,
    visited    timestamptz NOT NULL,
    PRIMARY KEY (user_id, project_id)
);

-- Whether a log policy canceled further restarts.
ALTER TABLE trials ADD retries_canceled boolean NOT NULL DEFAULT false;
