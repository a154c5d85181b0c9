-- core. Limits of users and workspaces. An owner without a row is not limited.
CREATE TABLE quotas (
    scope      text NOT NULL CHECK (scope IN ('user', 'workspace')),
    subject_id bigint NOT NULL,  -- user or workspace
    resource   text NOT NULL CHECK (resource IN ('slots', 'experiments', 'metric_series', 'log_bytes',
                                                 'checkpoint_bytes')),
    amount     bigint NOT NULL CHECK (amount >= 0),
    PRIMARY KEY (scope, subject_id, resource)
);
