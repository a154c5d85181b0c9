#include "cli/output/paging.h"

#include <unistd.h>

#include "cli/output/terminal.h"

namespace det::cli {
namespace {

template <typename List, typename Target>
void append(const List& list, Target& target) {
  target.insert(target.end(), list.begin(), list.end());
}

}  // namespace

void Paging::declare(CLI::App& app) {
  app.add_option("--limit", limit, "Print at most this many (default: 30 on a terminal, else all).")
      ->check(kPositive);
  app.add_option("--offset", offset, "Entries to skip; a negative number counts from the end.")
      ->capture_default_str();
  app.add_option("--pages", pages, "all: no limit; 1: one page, of 200 without --limit.")
      ->check(CLI::IsMember({"1", "all"}));
}

Paging Paging::resolved(const Output& output) const {
  constexpr int kPage = 200, kOnTerminal = 30;
  Paging paging = *this;
  if (pages == "all") {
    paging.limit = 0;
  } else if (limit == 0 && pages == "1") {
    paging.limit = kPage;
  } else if (limit == 0 && is_terminal(STDOUT_FILENO) && !output.for_programs() && !output.quiet) {
    paging.limit = kOnTerminal;
  }
  return paging;
}

Result<v1::Experiment> get_experiment(Client& client, int id) {
  v1::GetExperimentRequest request;
  request.set_experiment_id(id);
  TRY_ASSIGN(v1::GetExperimentResponse response, client.call(v1::ExperimentService::GetExperiment, request));
  return std::move(*response.mutable_experiment());
}

Result<v1::Trial> get_trial(Client& client, int id) {
  v1::GetTrialRequest request;
  request.set_trial_id(id);
  TRY_ASSIGN(v1::GetTrialResponse response, client.call(v1::TrialService::GetTrial, request));
  return std::move(*response.mutable_trial());
}

Result<std::vector<v1::Trial>> get_trials(Client& client, int experiment, const Paging& paging,
                                          std::int64_t* more) {
  v1::GetExperimentTrialsRequest request;
  request.set_experiment_id(experiment);
  std::vector<v1::Trial> trials;
  TRY_ASSIGN(
      const std::int64_t left_out,
      each_page(
          paging, request,
          [&](const auto& page) { return client.call(v1::ExperimentService::GetExperimentTrials, page); },
          [&](const auto& response) { append(response.trials(), trials); }));
  if (more != nullptr) *more = left_out;
  return trials;
}

/// Reads every page of checkpoints that `call` lists.
template <typename Call, typename Request>
static Result<std::vector<v1::Checkpoint>> all_checkpoints(Client& client, const Call& call,
                                                           Request request) {
  std::vector<v1::Checkpoint> checkpoints;
  TRY(each_page(
      Paging(), request, [&](const auto& page) { return client.call(call, page); },
      [&](const auto& response) { append(response.checkpoints(), checkpoints); }));
  return checkpoints;
}

Result<std::vector<v1::Checkpoint>> get_checkpoints(Client& client, int experiment) {
  v1::GetExperimentCheckpointsRequest request;
  request.set_id(experiment);
  return all_checkpoints(client, v1::ExperimentService::GetExperimentCheckpoints, request);
}

Result<std::vector<v1::Checkpoint>> get_trial_checkpoints(Client& client, int trial) {
  v1::GetTrialCheckpointsRequest request;
  request.set_id(trial);
  return all_checkpoints(client, v1::TrialService::GetTrialCheckpoints, request);
}

Result<std::vector<v1::WorkloadContainer>> get_workloads(Client& client, int trial, bool metrics,
                                                         const Paging& paging) {
  v1::GetTrialWorkloadsRequest request;
  request.set_trial_id(trial);
  // Training reports are numerous; most callers do not print them.
  if (!metrics) request.set_filter(v1::GetTrialWorkloadsRequest::FILTER_OPTION_CHECKPOINT_OR_VALIDATION);
  std::vector<v1::WorkloadContainer> workloads;
  TRY(each_page(
      paging, request,
      [&](const auto& page) { return client.call(v1::TrialService::GetTrialWorkloads, page); },
      [&](const auto& response) { append(response.workloads(), workloads); }));
  return workloads;
}

}  // namespace det::cli
