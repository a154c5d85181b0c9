-- The model registry; what people note of projects and pin; what clients keep for a user.
CREATE TABLE models (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name         text NOT NULL UNIQUE,
    description  text NOT NULL DEFAULT '',
    metadata     json NOT NULL DEFAULT '{}',
    labels       text[] NOT NULL DEFAULT '{}',
    notes        text NOT NULL DEFAULT '',
    workspace_id bigint NOT NULL REFERENCES workspaces,
    owner_id     bigint NOT NULL REFERENCES users,
    archived     boolean NOT NULL DEFAULT false,
    last_version bigint NOT NULL DEFAULT 0,
    created      timestamptz NOT NULL DEFAULT now(),
    changed      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX models_workspace ON models (workspace_id);
CREATE TABLE model_versions (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model_id        bigint NOT NULL REFERENCES models ON DELETE CASCADE,
    version         bigint NOT NULL,
    checkpoint_uuid text NOT NULL REFERENCES checkpoints,
    name            text NOT NULL DEFAULT '',
    comment         text NOT NULL DEFAULT '',
    notes           text NOT NULL DEFAULT '',
    metadata        json NOT NULL DEFAULT '{}',
    labels          text[] NOT NULL DEFAULT '{}',
    owner_id        bigint NOT NULL REFERENCES users,
    created         timestamptz NOT NULL DEFAULT now(),
    changed         timestamptz NOT NULL DEFAULT now(),
    UNIQUE (model_id, version)
);
CREATE INDEX model_versions_checkpoint ON model_versions (checkpoint_uuid);
ALTER TABLE projects ADD COLUMN key text UNIQUE;
ALTER TABLE projects ADD COLUMN notes json NOT NULL DEFAULT '[]';
CREATE TABLE workspace_pins (
    user_id      bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    workspace_id bigint NOT NULL REFERENCES workspaces ON DELETE CASCADE,
    PRIMARY KEY (user_id, workspace_id)
);
CREATE TABLE user_settings (
    user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    path    text NOT NULL,
    key     text NOT NULL,
    value   text NOT NULL,
    PRIMARY KEY (user_id, path, key)
);
