-- The sender reads the oldest event of each webhook.
CREATE INDEX webhook_events_webhook ON webhook_events (webhook_id, id);
