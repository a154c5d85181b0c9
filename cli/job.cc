// Owns `det job`: the queues of the pools, and moving what stands in them.
#include <algorithm>
#include <iostream>

#include "base/text.h"
#include "cli/command.h"
#include "cli/print.h"
#include "det/v1/job.grpc.pb.h"

namespace det::cli {
namespace {

using Stub = v1::JobService::Stub;

std::string state_text(const v1::Job::Summary& summary) {
  if (summary.state() != v1::Job::Summary::STATE_QUEUED) return "SCHEDULED";
  return summary.jobs_ahead() == 0 ? "QUEUED" : "QUEUED (" + std::to_string(summary.jobs_ahead()) + " ahead)";
}

Action declare_list(CLI::App& app) {
  auto output = std::make_shared<Output>();
  auto pool = std::make_shared<std::string>();
  output->declare(app);
  app.add_option("-p,--resource-pool", *pool, "Only of this pool.");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    v1::GetJobsRequest request;
    request.set_resource_pool(*pool);
    TRY_ASSIGN(const auto response, client->call(&Stub::GetJobs, request));
    Table table{{"Resource Pool", "#", "Job ID", "Experiment", "Name", "Priority", "Weight", "Submitted", "Slots",
                 "Max Slots", "Status"},
                {}};
    std::map<std::string, int> places;
    for (const v1::Job& job : response.jobs()) {
      table.rows.push_back({job.resource_pool(), std::to_string(++places[job.resource_pool()]), job.job_id(),
                            job.entity_id(), job.name(), std::to_string(job.priority()), number_text(job.weight()),
                            time_text(job.submission_time(), job.has_submission_time()),
                            std::to_string(job.allocated_slots()) + "/" + std::to_string(job.requested_slots()),
                            job.max_slots() > 0 ? std::to_string(job.max_slots()) : "", state_text(job.summary())});
    }
    TRY(output->print(table, [&] { return list_to_json(response.jobs()); }));
    return 0;
  };
}

struct UpdateFlags {
  std::string job, pool, ahead_of, behind_of;
  int priority = 0, max_slots = -1;
  double weight = 0;
};

/// A job's id, or its experiment's.
Result<std::string> job_id(Client& client, const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return text;
  TRY_ASSIGN(const auto response, client.call(&Stub::GetJobs, v1::GetJobsRequest()));
  for (const v1::Job& job : response.jobs()) {
    if (job.entity_id() == text) return job.job_id();
  }
  return fail(Code::kNotFound, "experiment " + text + " stands in no queue: it is paused, has ended or does not exist");
}

Result<v1::UpdateJobQueueRequest> to_request(Client& client, const UpdateFlags& flags) {
  v1::UpdateJobQueueRequest request;
  TRY_ASSIGN(const std::string id, job_id(client, flags.job));
  const auto add = [&] {
    v1::QueueControl* control = request.add_updates();
    control->set_job_id(id);
    return control;
  };
  if (!flags.pool.empty()) add()->set_resource_pool(flags.pool);
  if (flags.priority != 0) add()->set_priority(flags.priority);
  if (flags.weight != 0) add()->set_weight(flags.weight);
  if (flags.max_slots >= 0) add()->set_max_slots(flags.max_slots);
  if (!flags.ahead_of.empty()) {
    TRY_ASSIGN(const std::string anchor, job_id(client, flags.ahead_of));
    add()->set_ahead_of(anchor);
  }
  if (!flags.behind_of.empty()) {
    TRY_ASSIGN(const std::string anchor, job_id(client, flags.behind_of));
    add()->set_behind_of(anchor);
  }
  if (request.updates_size() == 0) {
    return fail(Code::kInvalidArgument,
                "say what to change: --priority, --weight, --max-slots, --resource-pool, --ahead-of or --behind-of");
  }
  return request;
}

Action declare_update(CLI::App& app) {
  auto flags = std::make_shared<UpdateFlags>();
  app.add_option("JOB", flags->job, "The job's id, or its experiment's.")->required();
  app.add_option("-p,--priority", flags->priority, "1 to 99; smaller goes first.");
  app.add_option("-w,--weight", flags->weight, "Its part of its user's share, in pools that share fairly.");
  app.add_option("--max-slots", flags->max_slots, "Never more slots than this; 0: no limit.");
  app.add_option("--resource-pool", flags->pool, "Waits there; what runs leaves, and starts again there.");
  app.add_option("--ahead-of", flags->ahead_of, "Directly ahead of this job, with its priority.");
  app.add_option("--behind-of", flags->behind_of, "Directly behind this job, with its priority.")
      ->excludes("--ahead-of");
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto request, to_request(*client, *flags));
    TRY(client->call(&Stub::UpdateJobQueue, request));
    std::cout << "Updated job " << printable(flags->job) << '\n';
    return 0;
  };
}

}  // namespace

Command job_command() {
  return {{"job", "j"},
          "See the queues, and move what stands in them.",
          {},
          {{{"list", "ls"}, "List what waits and runs, in the order of the queue.", declare_list},
           {{"update"}, "Change priority, weight, limit, pool or place.", declare_update}}};
}

}  // namespace det::cli
