// Paged lists: the flags, the loop over pages, and calls that return complete lists.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "common/client/session.h"
#include "det/v1/experiment.grpc.pb.h"
#include "det/v1/trial.grpc.pb.h"

namespace det::cli {

/// Values of `--limit`, `--offset` and `--pages`.
struct Paging {
  int limit = 200;            ///< entries per page
  int offset = 0;             ///< entries to skip; negative: from the end
  std::string pages = "all";  ///< "1" or "all"
  void declare(CLI::App& app);
};

/// Page size when all entries are read: saves round trips.
constexpr int kLargePage = 1000;

/// Calls `fetch(request)` for page after page and passes each response to `take`. Stops after the first page
/// with --pages 1. Errors: the first one of `fetch`.
template <typename Request, typename Fetch, typename Take>
Status each_page(const Paging& paging, Request request, const Fetch& fetch, const Take& take) {
  int offset = paging.offset;
  for (;;) {
    request.set_offset(offset);
    request.set_limit(paging.pages == "1" ? paging.limit : std::max(paging.limit, kLargePage));
    const auto response = fetch(request);
    if (!response) return tl::unexpected(response.error());
    take(*response);
    const v1::Pagination& page = response->pagination();
    const bool more = page.end_index() < page.total() && page.end_index() > offset;
    if (!more || paging.pages == "1") return {};
    offset = page.end_index();
  }
}

/// Each makes as many calls as there are pages. Errors: those of Client::call().
Result<v1::Experiment> get_experiment(Client& client, int id);
Result<v1::Trial> get_trial(Client& client, int id);
Result<std::vector<v1::Trial>> get_trials(Client& client, int experiment, const Paging& paging = {});
Result<std::vector<v1::Checkpoint>> get_checkpoints(Client& client, int experiment);
Result<std::vector<v1::Checkpoint>> get_trial_checkpoints(Client& client, int trial);
/// Returns the workloads of a trial in order of batches. Without `metrics` only validations and checkpoints.
Result<std::vector<v1::WorkloadContainer>> get_workloads(Client& client, int trial, bool metrics,
                                                         const Paging& paging = {.limit = 1000});

}  // namespace det::cli
