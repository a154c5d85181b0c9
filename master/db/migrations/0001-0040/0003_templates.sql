-- Owns the partial configurations that the cluster keeps: templates, and the admin's policies.
CREATE TABLE templates (
    name    text PRIMARY KEY,
    text    text NOT NULL,
    changed timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE config_policies (
    workload text PRIMARY KEY,
    text     text NOT NULL,
    set_by   bigint NOT NULL REFERENCES users,
    changed  timestamptz NOT NULL DEFAULT now()
);
