-- First named log policy that a line of a trial matched.
CREATE TABLE log_policy_matches (
    trial_id bigint PRIMARY KEY REFERENCES trials ON DELETE CASCADE,
    policy   text NOT NULL
);
