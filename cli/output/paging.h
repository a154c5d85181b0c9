// Paged lists: the flags, the loop over pages, and calls that return complete lists.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "cli/output/print.h"
#include "common/client/session.h"
#include "det/v1/experiment.methods.h"
#include "det/v1/trial.methods.h"

namespace det::cli {

/// Values of `--limit`, `--offset` and `--pages`.
struct Paging {
  int limit = 0;   ///< maximum number of entries; 0: all
  int offset = 0;  ///< entries to skip; negative: from the end
  std::string pages;
  void declare(CLI::App& app);
  /// Returns the paging of a command: --pages all is no limit, --pages 1 a limit of 200. Without both a table
  /// on a terminal has 30 rows.
  Paging resolved(const Output& output) const;
};

/// Page size when all entries are read: saves round trips.
constexpr int kLargePage = 1000;

/// Calls `fetch(request)` for page after page, up to the limit, and passes each response to `take`. Returns
/// the number of entries that the limit left out. Errors: the first one of `fetch`.
template <typename Request, typename Fetch, typename Take>
Result<std::int64_t> each_page(const Paging& paging, Request request, const Fetch& fetch, const Take& take) {
  int offset = paging.offset, left = paging.limit;
  for (;;) {
    request.set_offset(offset);
    request.set_limit(left > 0 ? std::min(left, kLargePage) : kLargePage);
    const auto response = fetch(request);
    if (!response) return tl::unexpected(response.error());
    take(*response);
    const v1::Pagination& page = response->pagination();
    if (page.end_index() >= page.total() || page.end_index() <= page.start_index()) return 0;
    offset = page.end_index();
    if (paging.limit == 0) continue;
    left -= page.end_index() - page.start_index();
    if (left <= 0) return page.total() - page.end_index();
  }
}

/// Each makes as many calls as there are pages. Errors: those of Client::call().
Result<v1::Experiment> get_experiment(Client& client, int id);
Result<v1::Trial> get_trial(Client& client, int id);
/// Sets `more`, when given, to the number of trials that the limit left out.
Result<std::vector<v1::Trial>> get_trials(Client& client, int experiment, const Paging& paging = {},
                                          std::int64_t* more = nullptr);
Result<std::vector<v1::Checkpoint>> get_checkpoints(Client& client, int experiment);
Result<std::vector<v1::Checkpoint>> get_trial_checkpoints(Client& client, int trial);
/// Returns the workloads of a trial in order of batches. Without `metrics` only validations and checkpoints.
Result<std::vector<v1::WorkloadContainer>> get_workloads(Client& client, int trial, bool metrics,
                                                         const Paging& paging = {});

}  // namespace det::cli
