-- Ids of allocations of deleted experiments and commands, for the CSV of allocations.
ALTER TABLE past_usage ADD COLUMN allocation_id text NOT NULL DEFAULT '';
