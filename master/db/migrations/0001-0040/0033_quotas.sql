-- Quotas of users and workspaces, and the text of log lines by allocation, which one of them limits.
CREATE TABLE quotas (
    scope      text NOT NULL CHECK (scope IN ('user', 'workspace')),
    subject_id bigint NOT NULL,
    resource   text NOT NULL CHECK (resource IN ('slots', 'experiments', 'metric_series', 'log_bytes',
                                                 'checkpoint_bytes')),
    amount     bigint NOT NULL CHECK (amount >= 0),
    PRIMARY KEY (scope, subject_id, resource)
);
ALTER TABLE log_positions ADD COLUMN bytes bigint NOT NULL DEFAULT 0;
