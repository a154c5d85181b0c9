-- Webhooks and submissions of generic tasks.
-- Webhooks: endpoints, their triggers, and the queue of events that are to be delivered. Written by webhooks,
-- for matching lines by bulk, and for metrics by the core's writer and bulk.
CREATE TABLE webhooks (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL,
    url          text NOT NULL,
    format       text NOT NULL CHECK (format IN ('DEFAULT', 'SLACK')),
    mode         text NOT NULL CHECK (mode IN ('WORKSPACE', 'SPECIFIC')),
    workspace_id bigint REFERENCES workspaces ON DELETE CASCADE, -- NULL: the whole cluster
    failures     bigint NOT NULL DEFAULT 0,  -- failed attempts in a row
    outcome      text NOT NULL DEFAULT '',   -- of the latest attempt; '': none yet
    attempted    timestamptz
);
CREATE TABLE webhook_triggers (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id bigint NOT NULL REFERENCES webhooks ON DELETE CASCADE,
    kind       text NOT NULL CHECK (kind IN ('EXPERIMENT_STATE_CHANGE', 'TASK_LOG', 'METRIC_THRESHOLD_EXCEEDED', 'CUSTOM')),
    condition  text NOT NULL -- state of the experiment, regular expression, or rule as JSON; '' for CUSTOM
);
CREATE INDEX webhook_triggers_webhook ON webhook_triggers (webhook_id);
-- No foreign keys: an event of a removed webhook must not fail the transaction that adds it. The sender
-- deletes such events.
CREATE TABLE webhook_events (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    webhook_id    bigint NOT NULL,
    kind          text NOT NULL,
    experiment_id bigint,         -- NULL: a command, or a test
    event         json NOT NULL,  -- what happened, apart from the experiment
    created       timestamptz NOT NULL DEFAULT now(),
    due           timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX webhook_events_due ON webhook_events (due, id);
CREATE INDEX webhook_events_webhook ON webhook_events (webhook_id, id);
-- A trigger of log lines or metrics fires once per task.
CREATE TABLE webhook_matches (
    task_id    text NOT NULL,
    trigger_id bigint NOT NULL,
    PRIMARY KEY (task_id, trigger_id)
);
CREATE TRIGGER experiments_webhooks AFTER UPDATE OF state ON experiments FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION queue_state_webhooks();

-- First named log policy that a line of a trial matched. Written by bulk.
CREATE TABLE log_policy_matches (
    trial_id bigint PRIMARY KEY REFERENCES trials ON DELETE CASCADE,
    policy   text NOT NULL
);
