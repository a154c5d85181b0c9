-- Owns the index that lists of experiments are counted and cut by, without a look at the wide rows.
CREATE INDEX experiments_list ON experiments (id) INCLUDE (archived, state, owner_id, project_id);
