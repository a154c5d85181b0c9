-- Agents that a log policy with the action exclude_node has excluded from a trial.
ALTER TABLE trials ADD excluded_agents text[] NOT NULL DEFAULT '{}';
