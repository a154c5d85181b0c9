-- The message of the administrators to all users: at most one row.
CREATE TABLE cluster_message (
    one     boolean PRIMARY KEY DEFAULT true CHECK (one),
    message text NOT NULL,
    starts  timestamptz NOT NULL,
    ends    timestamptz,
    created timestamptz NOT NULL DEFAULT now()
);
