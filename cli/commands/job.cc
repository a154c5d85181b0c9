// `det job`: the queues of the resource pools, and changes of a job's position.
#include <algorithm>
#include <charconv>
#include <iostream>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/job.methods.h"

namespace det::cli {
namespace {

/// "SCHEDULED", or "QUEUED" with the number of jobs ahead.
std::string queue_state_text(const v1::Job::Summary& summary) {
  if (summary.state() != v1::Job::Summary::STATE_QUEUED) return "SCHEDULED";
  return summary.jobs_ahead() == 0 ? "QUEUED" : "QUEUED (" + std::to_string(summary.jobs_ahead()) + " ahead)";
}

/// "4/8": allocated and requested slots.
std::string slots_text(const v1::Job& job) {
  return std::to_string(job.allocated_slots()) + "/" + std::to_string(job.requested_slots());
}

struct JobListOptions {
  Output output;
  Paging paging;
  std::string pool;
  bool reverse = false;
  void declare(CLI::App& app) {
    output.declare_list(app);
    app.add_flag_callback(
        "--table", [] {}, "Print as a table (default).");
    app.add_option("-p,--resource-pool", pool, "Only jobs of this resource pool.");
    app.add_flag("--reverse", reverse, "Reverse the order of the queue.");
    paging.declare(app);
  }
};

Status list_jobs(Client& client, const JobListOptions& options) {
  v1::GetJobsRequest request;
  request.set_resource_pool(options.pool);
  if (options.reverse) request.set_order_by(v1::ORDER_BY_DESC);
  std::vector<v1::Job> jobs;
  TRY_ASSIGN(const std::int64_t more,
             each_page(
                 options.paging.resolved(options.output), request,
                 [&](const auto& page) { return client.call(v1::JobService::GetJobs, page); },
                 [&](const auto& response) {
                   jobs.insert(jobs.end(), response.jobs().begin(), response.jobs().end());
                 }));
  TRY_ASSIGN(const auto names, user_names(client));
  Table table{{"Resource Pool", "#", "ID", "Type", "Job Name", "Experiment", "Priority", "Weight",
               "Submitted", "Slots (acquired/needed)", "Max Slots", "State", "User"},
              {},
              {2},
              {"ID", "Weight", "Max Slots"},
              more};
  // Positions are counted per pool: the list is ordered by pool.
  std::map<std::string, int> positions;
  for (const v1::Job& job : jobs) {
    const auto user = names.find(job.user_id());
    table.rows.push_back({job.resource_pool(), std::to_string(positions[job.resource_pool()]++), job.job_id(),
                          job.type().starts_with("TYPE_") ? job.type().substr(5) : job.type(), job.name(),
                          job.entity_id(), std::to_string(job.priority()), number_text(job.weight()),
                          time_text(job.submission_time(), job.has_submission_time()), slots_text(job),
                          job.max_slots() > 0 ? std::to_string(job.max_slots()) : "",
                          queue_state_text(job.summary()), user == names.end() ? "" : user->second});
  }
  return options.output.print(table, [&] { return list_to_json(jobs); });
}

/// Changes of one job. Empty strings, 0 and a negative limit of slots mean no change.
struct JobUpdateOptions {
  std::string job, pool, ahead_of, behind_of;
  int priority = 0, max_slots = -1;
  double weight = 0;

  void declare(CLI::App& app) {
    app.add_option("JOB", job, "Job id, or the id of its experiment.")->required();
    app.add_option("-p,--priority", priority, "Priority from 1 to 99; smaller values go first.");
    app.add_option("-w,--weight", weight, "Weight in fair-share pools, relative to other jobs of the user.");
    app.add_option("--max-slots", max_slots, "Maximum number of slots; 0: no limit.");
    app.add_option("--resource-pool", pool,
                   "Move the job to this resource pool. Its allocations are preempted and requeued.");
    app.add_option("--ahead-of", ahead_of, "Move directly ahead of this job, and take its priority.");
    app.add_option("--behind-of", behind_of, "Move directly behind this job, and take its priority.")
        ->excludes("--ahead-of");
  }
};

/// Returns the id of a job that is named by its own id or by that of its experiment. Errors: kNotFound.
Result<std::string> job_id(Client& client, const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return text;
  TRY_ASSIGN(const auto response, client.call(v1::JobService::GetJobs, v1::GetJobsRequest()));
  for (const v1::Job& job : response.jobs()) {
    if (job.entity_id() == text) return job.job_id();
  }
  return fail(Code::kNotFound,
              "experiment " + text + " has no queued job: it is paused, has ended or does not exist");
}

/// Converts the flags; each changed property is an update of its own. Errors: kInvalidArgument (no change).
Result<v1::UpdateJobQueueRequest> to_request(Client& client, const JobUpdateOptions& options) {
  v1::UpdateJobQueueRequest request;
  TRY_ASSIGN(const std::string id, job_id(client, options.job));
  const auto add = [&] {
    v1::QueueControl* control = request.add_updates();
    control->set_job_id(id);
    return control;
  };
  if (!options.pool.empty()) add()->set_resource_pool(options.pool);
  if (options.priority != 0) add()->set_priority(options.priority);
  if (options.weight != 0) add()->set_weight(options.weight);
  if (options.max_slots >= 0) add()->set_max_slots(options.max_slots);
  if (!options.ahead_of.empty()) {
    TRY_ASSIGN(const std::string anchor, job_id(client, options.ahead_of));
    add()->set_ahead_of(anchor);
  }
  if (!options.behind_of.empty()) {
    TRY_ASSIGN(const std::string anchor, job_id(client, options.behind_of));
    add()->set_behind_of(anchor);
  }
  if (request.updates_size() == 0) {
    return fail(Code::kInvalidArgument,
                "nothing to change; give --priority, --weight, --max-slots, --resource-pool, --ahead-of or "
                "--behind-of");
  }
  return request;
}

Status update_job(Client& client, const JobUpdateOptions& options) {
  TRY_ASSIGN(const auto request, to_request(client, options));
  TRY(client.call(v1::JobService::UpdateJobQueue, request));
  std::cout << "Updated job " << printable(options.job) << '\n';
  return {};
}

/// Parses one change such as "3.priority=10". Errors: kInvalidArgument.
Result<JobUpdateOptions> parse_update(const std::string& text) {
  const auto bad = [&](const std::string& why) {
    return fail(Code::kInvalidArgument,
                "\"" + text + "\": " + why + "; write ID.property=value, such as 3.priority=10");
  };
  // The last dot before '=' separates the job from the property.
  const std::size_t equals = text.find('='), dot = text.rfind('.', equals);
  if (equals == std::string::npos || dot == std::string::npos || dot == 0)
    return bad("not a change of a job");
  const std::string what = text.substr(dot + 1, equals - dot - 1), value = text.substr(equals + 1);
  JobUpdateOptions options;
  options.job = text.substr(0, dot);
  const auto number = [&](auto& target) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), target);
    return error == std::errc() && end == value.data() + value.size();
  };
  static const std::vector<std::string> kKinds{"priority",      "weight",   "max-slots",
                                               "resource-pool", "ahead-of", "behind-of"};
  if (what == "resource-pool") return options.pool = value, options;
  if (what == "ahead-of") return options.ahead_of = value, options;
  if (what == "behind-of") return options.behind_of = value, options;
  if (std::find(kKinds.begin(), kKinds.end(), what) == kKinds.end())
    return bad("\"" + what + "\" cannot be changed" + did_you_mean(what, kKinds));
  const bool good = what == "priority" ? number(options.priority)
                    : what == "weight" ? number(options.weight)
                                       : number(options.max_slots);
  if (!good) return bad("\"" + value + "\" is not a number");
  return options;
}

struct JobBatchOptions {
  std::vector<std::string> changes;
  void declare(CLI::App& app) {
    app.add_option("CHANGE", changes,
                   "ID.property=value; properties: priority, weight, max-slots, resource-pool, ahead-of, "
                   "behind-of.")
        ->required();
  }
};

Status update_jobs(Session& session, const JobBatchOptions& options) {
  std::vector<JobUpdateOptions> changes;
  // All words are parsed before the first call, so that a typing error changes nothing.
  for (const std::string& word : options.changes) {
    TRY_ASSIGN(changes.emplace_back(), parse_update(word));
  }
  TRY_ASSIGN(Client * client, session.client());
  v1::UpdateJobQueueRequest request;
  for (const JobUpdateOptions& each : changes) {
    TRY_ASSIGN(const auto one, to_request(*client, each));
    request.MergeFrom(one);
  }
  TRY(client->call(v1::JobService::UpdateJobQueue, request));
  std::cout << "Updated " << changes.size() << (changes.size() == 1 ? " job\n" : " jobs\n");
  return {};
}

}  // namespace

Command job_command() {
  return {{"job", "j"},
          "Manage the queues of the resource pools.",
          {},
          {{{"list", "ls"}, "List jobs in the order of the queue.", action(list_jobs)},
           {{"update", "u"}, "Change priority, weight, slot limit, pool or position.", action(update_job)},
           {{"update-batch"}, "Change several jobs, all or none.", action(update_jobs)}}};
}

}  // namespace det::cli
