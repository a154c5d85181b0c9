// Search of experiments and runs by any column. Filter, text and sort order come from untrusted clients and
// are translated into SQL with bound parameters.
#pragma once

#include "master/db/queries/experiments.h"
#include "master/db/queries/trials.h"

namespace det::db {

/// A search as defined in proto/det/v1/search.proto.
struct ExperimentSearch {
  /// Substring of name, description or label, or an experiment id; "" matches all.
  std::string text;
  std::string filter;  ///< JSON; "" does not filter.
  std::string sort;    ///< "" sorts newest first.
  /// Unset: all projects.
  std::optional<std::int64_t> project;
  Visible visible;
  Window window;  ///< `descending` is ignored.
};

/// A match with the data of its best trial, or of its first one while none has a metric.
struct FoundExperiment {
  ExperimentRow row;
  std::string best_hparams;                    ///< JSON; "" without trials.
  std::optional<std::string> best_validation;  ///< JSON: metrics of its best validation.
  /// JSON: its last training metrics up to that validation.
  std::optional<std::string> best_training;
  std::optional<std::string> best_metadata;  ///< JSON: metadata of the trial.
};

/// Runs a search. Errors: kInvalidArgument (names all unknown columns and operators); kDeadlineExceeded (more
/// than 10 s).
Result<Page<FoundExperiment>> search_experiments(Pool& pool, const ExperimentSearch& search);

/// A search of trials as defined in proto/det/v1/run.proto.
struct RunSearch {
  std::vector<std::int64_t> ids;  ///< Trials; empty: any. With ids, archived ones match without a filter.
  std::string filter;             ///< JSON; "" does not filter.
  std::string sort;               ///< "" sorts by id.
  std::optional<std::int64_t> project;  ///< Unset: all projects.
  Visible visible;
  Window window;  ///< `descending` is ignored.
};

/// A trial with its experiment.
struct FoundRun {
  TrialRow trial;
  ExperimentRow experiment;
  std::optional<std::string> metadata;  ///< JSON: metadata of the trial.
};

/// Runs a search. Errors as search_experiments().
Result<Page<FoundRun>> search_runs(Pool& pool, const RunSearch& search);

/// A search translated to SQL: column names from a fixed table, every value a numbered parameter.
struct SearchSql {
  std::string count;  ///< Returns one row: the number of matches.
  /// Returns the ids of one page in order, and with each the number of matches if `counted`. Takes two more
  /// parameters: offset and limit, which may be NULL.
  std::string page;
  /// Counting alone would cost as much as the page.
  bool counted = false;
  Params params;
};
/// Translates a search. Pure. kInvalidArgument names all problems.
Result<SearchSql> search_sql(const ExperimentSearch& search);
Result<SearchSql> run_search_sql(const RunSearch& search);

}  // namespace det::db
