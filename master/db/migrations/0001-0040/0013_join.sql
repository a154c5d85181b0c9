-- Agents of other machines come in with a token and stay with a certificate.
CREATE TABLE join_tokens (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    token_hash text NOT NULL UNIQUE,
    pool       text NOT NULL,
    agent_id   text NOT NULL,
    uses_left  bigint NOT NULL,
    created    timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    expires    timestamptz NOT NULL
);
CREATE TABLE agent_certificates (
    fingerprint   text PRIMARY KEY,
    agent_id      text NOT NULL,
    key_digest    text NOT NULL,
    pool          text NOT NULL,
    join_token_id bigint NOT NULL,
    issued        timestamptz NOT NULL DEFAULT now(),
    expires       timestamptz NOT NULL,
    revoked       boolean NOT NULL DEFAULT false
);
CREATE INDEX agent_certificates_agent ON agent_certificates (agent_id);
