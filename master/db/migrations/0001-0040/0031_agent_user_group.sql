-- Account on the machines of agents that the tasks of a user run under: all columns or none.
ALTER TABLE users
    ADD COLUMN agent_uid integer,
    ADD COLUMN agent_gid integer,
    ADD COLUMN agent_user text,
    ADD COLUMN agent_group text,
    ADD CHECK (num_nulls(agent_uid, agent_gid, agent_user, agent_group) IN (0, 4));
