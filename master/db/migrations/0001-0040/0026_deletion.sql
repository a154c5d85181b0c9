-- Deletion of projects and workspaces with their contents, in the background.
ALTER TABLE projects ADD COLUMN deletion text;
ALTER TABLE workspaces ADD COLUMN deletion text;
ALTER TABLE cluster ADD COLUMN last_command bigint NOT NULL DEFAULT 0;
