-- Who submitted which files: asked when an experiment is made of files that are here already.
CREATE INDEX experiments_model ON experiments (model_definition, owner_id) WHERE model_definition <> '';
