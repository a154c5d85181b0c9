-- The sizes of many checkpoints may add up to more than 64 bits.
CREATE OR REPLACE FUNCTION summarize_checkpoint() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    more bigint := (NEW.state = 'COMPLETED')::int;
    bytes numeric := CASE WHEN NEW.state = 'COMPLETED' THEN NEW.size ELSE 0 END;
BEGIN
    IF TG_OP = 'UPDATE' AND OLD.state = 'COMPLETED' THEN
        more := more - 1;
        bytes := bytes - OLD.size;
    END IF;
    -- An error here would end the writer. A sum beyond 64 bits stays at their maximum.
    UPDATE experiment_summaries SET checkpoints = checkpoints + more,
           checkpoint_bytes = least(greatest(checkpoint_bytes + bytes, 0), 9223372036854775807)::bigint
     WHERE experiment_id = (SELECT experiment_id FROM trials WHERE id = NEW.trial_id);
    RETURN NULL;
END
$$;
