-- Functions of the schema; a readable view of what the migrations create. Comments inside the function bodies
-- are part of the stored definitions and must equal those of the migrations.
SET check_function_bodies = off;

-- Text that regular expressions match: the line as UTF-8, or with its bytes escaped when it is not UTF-8.
CREATE FUNCTION log_text(log bytea) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN convert_from(log, 'UTF8');
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN encode(log, 'escape');
END
$$;

-- Value that searches compare; NULL where jsonb cannot hold it (a NUL, a number beyond numeric). Such an
-- experiment is still listed, but not found by this value.
CREATE FUNCTION searchable(value json) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN value::jsonb;
EXCEPTION WHEN data_exception OR program_limit_exceeded OR statement_too_complex THEN
    RETURN NULL;
END
$$;

-- Whether a webhook applies to an experiment of this workspace and configuration.
CREATE FUNCTION webhook_applies(hook bigint, name text, mode text, scope bigint, workspace bigint, config json) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(config #>> '{integrations,webhooks,exclude}', 'false') <> 'true'
       AND (scope IS NULL OR scope = workspace)
       AND (mode = 'WORKSPACE'
            OR coalesce((config #> '{integrations,webhooks,webhook_id}')::jsonb @> to_jsonb(hook), false)
            OR coalesce((config #> '{integrations,webhooks,webhook_name}')::jsonb @> to_jsonb(name), false))
$$;

-- Queues the events of a new state in the transaction that stores the state.
CREATE FUNCTION queue_state_webhooks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhook_events (webhook_id, kind, experiment_id, event)
    SELECT w.id, t.kind, NEW.id, json_build_object('state', NEW.state)
      FROM webhook_triggers t JOIN webhooks w ON w.id = t.webhook_id
     WHERE t.kind = 'EXPERIMENT_STATE_CHANGE' AND t.condition = NEW.state
       AND webhook_applies(w.id, w.name, w.mode, w.workspace_id,
                           (SELECT workspace_id FROM projects WHERE id = NEW.project_id), NEW.config)
     ORDER BY t.id;
    RETURN NULL;
END
$$;
