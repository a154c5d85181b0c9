-- Chunks have an outline, a quarter of their extremes, for charts of very long series. They are packed again from
-- their rows when a chart reads them.
TRUNCATE metric_chunks;
ALTER TABLE metric_chunks ADD COLUMN outline bytea NOT NULL;
ALTER TABLE metric_chunks ALTER COLUMN outline SET STORAGE EXTERNAL;
