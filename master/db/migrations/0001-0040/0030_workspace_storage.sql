-- Default checkpoint storage of the experiments of a workspace.
ALTER TABLE workspaces ADD COLUMN checkpoint_storage json;
