-- Owns trials that wait at a rung of their search.
ALTER TABLE trials ADD COLUMN held boolean NOT NULL DEFAULT false;
