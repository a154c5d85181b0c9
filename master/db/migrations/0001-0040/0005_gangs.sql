-- Owns allocations on several agents, and where experiments stand in the queue of their pool.
-- Each agent of a gang counts its own lines.
ALTER TABLE log_positions ADD COLUMN agent_id text NOT NULL DEFAULT '';
UPDATE log_positions p SET agent_id = a.agent_id FROM allocations a WHERE a.id = p.allocation_id;
ALTER TABLE log_positions ALTER COLUMN agent_id DROP DEFAULT;
ALTER TABLE log_positions DROP CONSTRAINT log_positions_pkey, ADD PRIMARY KEY (allocation_id, agent_id);

ALTER TABLE allocations ADD COLUMN parts json;
UPDATE allocations SET parts = json_build_array(json_build_object(
    'agent', agent_id, 'instance', agent_instance, 'address', '', 'slots', to_json(slots), 'state', state,
    'exit', CASE WHEN exit_kind IS NOT NULL
                 THEN json_build_object('kind', exit_kind, 'code', exit_code, 'message', exit_message) END));
ALTER TABLE allocations ALTER COLUMN parts SET NOT NULL;
ALTER TABLE allocations ADD COLUMN port integer NOT NULL DEFAULT 0;
ALTER TABLE allocations DROP COLUMN agent_id, DROP COLUMN agent_instance, DROP COLUMN slots;
CREATE INDEX allocations_ended ON allocations (pool, ended) WHERE ended IS NOT NULL;

-- NULL in experiments from before: as configured.
ALTER TABLE experiments ADD COLUMN priority integer, ADD COLUMN weight double precision,
    ADD COLUMN max_slots integer, ADD COLUMN queue_position bigint;

-- core. What administrators took out of service; agents and slots that are not here are in it.
CREATE TABLE agent_settings (
    agent_id       text PRIMARY KEY,
    enabled        boolean NOT NULL,
    draining       boolean NOT NULL,
    disabled_slots bigint[] NOT NULL
);
