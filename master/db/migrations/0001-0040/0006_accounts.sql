-- Owns who may do what where: roles, access tokens, what workspaces and projects are beyond a name, the audit log.
ALTER TABLE sessions
    ADD COLUMN kind        text NOT NULL DEFAULT 'SESSION' CHECK (kind IN ('SESSION', 'ACCESS_TOKEN')),
    ADD COLUMN description text NOT NULL DEFAULT '',
    ADD COLUMN most        text CHECK (most IN ('VIEWER', 'EDITOR', 'WORKSPACE_ADMIN')),
    ADD COLUMN revoked     boolean NOT NULL DEFAULT false,
    ADD COLUMN last_used   timestamptz NOT NULL DEFAULT now();

ALTER TABLE workspaces
    ADD COLUMN owner_id bigint REFERENCES users,
    ADD COLUMN archived boolean NOT NULL DEFAULT false,
    ADD COLUMN created  timestamptz NOT NULL DEFAULT now();
ALTER TABLE projects
    ADD COLUMN description text NOT NULL DEFAULT '',
    ADD COLUMN owner_id    bigint REFERENCES users,
    ADD COLUMN archived    boolean NOT NULL DEFAULT false,
    ADD COLUMN created     timestamptz NOT NULL DEFAULT now();
ALTER TABLE templates ADD COLUMN workspace_id bigint NOT NULL DEFAULT 1 REFERENCES workspaces;

CREATE TABLE grants (
    user_id      bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    role         text NOT NULL CHECK (role IN ('VIEWER', 'EDITOR', 'WORKSPACE_ADMIN')),
    workspace_id bigint REFERENCES workspaces ON DELETE CASCADE
);
CREATE UNIQUE INDEX grants_once ON grants (user_id, role, coalesce(workspace_id, 0));
CREATE INDEX grants_workspace ON grants (workspace_id);
-- Who was there before there were roles goes on as before.
INSERT INTO grants (user_id, role, workspace_id) SELECT id, 'EDITOR', 1 FROM users WHERE NOT admin;

CREATE TABLE audit (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    time     timestamptz NOT NULL DEFAULT now(),
    user_id  bigint,
    username text NOT NULL,
    action   text NOT NULL,
    object   text NOT NULL,
    outcome  text NOT NULL,
    address  text NOT NULL
);
