-- Config policies of a workspace beside the cluster's, whose row has none.
ALTER TABLE config_policies ADD COLUMN workspace_id bigint REFERENCES workspaces ON DELETE CASCADE;
ALTER TABLE config_policies DROP CONSTRAINT config_policies_pkey;
CREATE UNIQUE INDEX config_policies_key ON config_policies (workload, coalesce(workspace_id, 0));
