// Owns looking through experiments by any column: filter, free text and order as strangers write them become
// SQL whose data travels as parameters.
#pragma once

#include "master/db/queries_experiment.h"

namespace det::db {

/// As proto/det/v1/search.proto describes them.
struct ExperimentSearch {
  std::string text;
  std::string filter;  ///< JSON; "" does not filter
  std::string sort;    ///< "" is newest first
  std::optional<std::int64_t> project;
  std::optional<std::vector<std::int64_t>> visible;  ///< the workspaces that may be looked into; nothing: all
  Window window;                                     ///< its direction is not looked at
};

struct FoundExperiment {
  ExperimentRow row;
  std::string best_hparams;  ///< JSON of the best trial, or of the first while none is; "" without any
  std::optional<std::string> best_validation;  ///< JSON: its metrics at its best
  std::optional<std::string> best_training;    ///< JSON: its training metrics as last reported up to its best
  std::optional<std::string> best_metadata;    ///< JSON: what its process or people noted
};

/// kInvalidArgument names every column and operator it does not know; kDeadlineExceeded after 10 s.
Result<Page<FoundExperiment>> search_experiments(Pool& pool, const ExperimentSearch& search);

/// What a search means: column names of ours, and numbered parameters for everything the search says.
struct SearchSql {
  std::string count;  ///< one row: how many there are
  std::string
      page;  ///< the ids of a part of them in order; two more parameters: how many to leave out, to take
  Params params;
};
Result<SearchSql> search_sql(const ExperimentSearch& search);

}  // namespace det::db
