-- Pilots for one allocation: its slots, and whether it has started.
ALTER TABLE pilots ADD COLUMN slots integer, ADD COLUMN used boolean NOT NULL DEFAULT false;
