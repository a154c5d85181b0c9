-- What ended last, as every dashboard asks: looking at all experiments for ten of them took a tenth of a second for 100,000.
CREATE INDEX experiments_ended ON experiments (ended DESC NULLS LAST, id DESC);
