// Owns lists that come in pages: the flags, the loop, and the lists several commands need whole.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "cli/session.h"
#include "det/v1/experiment.grpc.pb.h"
#include "det/v1/trial.grpc.pb.h"

namespace det::cli {

/// `--limit`, `--offset`, `--pages`.
struct Paging {
  int limit = 200;  ///< of one page
  int offset = 0;
  std::string pages = "all";
  void declare(CLI::App& app);
};

constexpr int kLargePage = 1000;  ///< entries in one answer when all are wanted: fewer ways to the master

/// Calls `fetch(request)` page by page and hands each answer to `take`.
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

Result<v1::Experiment> get_experiment(Client& client, int id);
Result<v1::Trial> get_trial(Client& client, int id);
Result<std::vector<v1::Trial>> get_trials(Client& client, int experiment, const Paging& paging = {});
Result<std::vector<v1::Checkpoint>> get_checkpoints(Client& client, int experiment);
Result<std::vector<v1::Checkpoint>> get_trial_checkpoints(Client& client, int trial);
/// What the trial did, in order of batches; without `metrics` only validations and checkpoints.
Result<std::vector<v1::WorkloadContainer>> get_workloads(Client& client, int trial, bool metrics,
                                                         const Paging& paging = {.limit = 1000});

}  // namespace det::cli
