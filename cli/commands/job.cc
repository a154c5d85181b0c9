// `det job`: the queues of the resource pools, and changes of a job's position.
#include <algorithm>
#include <charconv>
#include <iostream>

#include "cli/command.h"
#include "cli/commands/accounts.h"
#include "cli/output/paging.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/job.grpc.pb.h"

namespace det::cli {
namespace {

using JobStub = v1::JobService::Stub;

/// "SCHEDULED", or "QUEUED" with the number of jobs ahead.
std::string queue_state_text(const v1::Job::Summary& summary) {
  if (summary.state() != v1::Job::Summary::STATE_QUEUED) return "SCHEDULED";
  return summary.jobs_ahead() == 0 ? "QUEUED" : "QUEUED (" + std::to_string(summary.jobs_ahead()) + " ahead)";
}

/// "4/8": allocated and requested slots.
std::string slots_text(const v1::Job& job) {
  return std::to_string(job.allocated_slots()) + "/" + std::to_string(job.requested_slots());
}

struct JobListFlags {
  Output output;
  Paging paging{.limit = 100};
  std::string pool;
  bool reverse = false;
};

Result<int> list_jobs(Session& session, const JobListFlags& flags) {
  TRY_ASSIGN(Client * client, session.client());
  v1::GetJobsRequest request;
  request.set_resource_pool(flags.pool);
  if (flags.reverse) request.set_order_by(v1::ORDER_BY_DESC);
  std::vector<v1::Job> jobs;
  TRY(each_page(
      flags.paging, request, [&](const auto& page) { return client->call(&JobStub::GetJobs, page); },
      [&](const auto& response) {
        jobs.insert(jobs.end(), response.jobs().begin(), response.jobs().end());
      }));
  TRY_ASSIGN(const auto names, user_names(*client));
  Table table{{"Resource Pool", "#", "ID", "Type", "Job Name", "Experiment", "Priority", "Weight",
               "Submitted", "Slots (acquired/needed)", "Max Slots", "State", "User"},
              {},
              {2}};
  // Positions are counted per pool: the list is ordered by pool.
  std::map<std::string, int> places;
  for (const v1::Job& job : jobs) {
    const auto user = names.find(job.user_id());
    table.rows.push_back({job.resource_pool(), std::to_string(places[job.resource_pool()]++), job.job_id(),
                          job.type().starts_with("TYPE_") ? job.type().substr(5) : job.type(), job.name(),
                          job.entity_id(), std::to_string(job.priority()), number_text(job.weight()),
                          time_text(job.submission_time(), job.has_submission_time()), slots_text(job),
                          job.max_slots() > 0 ? std::to_string(job.max_slots()) : "",
                          queue_state_text(job.summary()), user == names.end() ? "" : user->second});
  }
  TRY(flags.output.print(table, [&] { return list_to_json(jobs); }));
  return 0;
}

Action declare_job_list(CLI::App& app) {
  auto flags = std::make_shared<JobListFlags>();
  flags->output.declare_list(app);
  app.add_flag_callback(
      "--table", [] {}, "Print as a table, which is what happens anyway.");
  app.add_option("-p,--resource-pool", flags->pool, "Only of this pool.");
  app.add_flag("--reverse", flags->reverse, "The end of the queue first.");
  flags->paging.declare(app);
  return [=](Session& session) { return list_jobs(session, *flags); };
}

/// Changes of one job. Empty strings, 0 and a negative limit of slots mean no change.
struct UpdateFlags {
  std::string job, pool, ahead_of, behind_of;
  int priority = 0, max_slots = -1;
  double weight = 0;
};

/// Returns the id of a job that is named by its own id or by that of its experiment. Errors: kNotFound.
Result<std::string> job_id(Client& client, const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return text;
  TRY_ASSIGN(const auto response, client.call(&JobStub::GetJobs, v1::GetJobsRequest()));
  for (const v1::Job& job : response.jobs()) {
    if (job.entity_id() == text) return job.job_id();
  }
  return fail(Code::kNotFound,
              "experiment " + text + " stands in no queue: it is paused, has ended or does not exist");
}

/// Converts the flags; each changed property is an update of its own. Errors: kInvalidArgument (no change).
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
    return fail(
        Code::kInvalidArgument,
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
    TRY(client->call(&JobStub::UpdateJobQueue, request));
    std::cout << "Updated job " << printable(flags->job) << '\n';
    return 0;
  };
}

/// Parses one change such as "3.priority=10". Errors: kInvalidArgument.
Result<UpdateFlags> parse_update(const std::string& text) {
  const auto bad = [&](const std::string& why) {
    return fail(Code::kInvalidArgument, "\"" + text + "\": " + why + "; write it like 3.priority=10");
  };
  // The last dot before '=' separates the job from the property.
  const std::size_t equals = text.find('='), dot = text.rfind('.', equals);
  if (equals == std::string::npos || dot == std::string::npos || dot == 0)
    return bad("is no change of a job");
  const std::string what = text.substr(dot + 1, equals - dot - 1), value = text.substr(equals + 1);
  UpdateFlags flags;
  flags.job = text.substr(0, dot);
  const auto number = [&](auto& target) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), target);
    return error == std::errc() && end == value.data() + value.size();
  };
  static const std::vector<std::string> kKinds{"priority",      "weight",   "max-slots",
                                               "resource-pool", "ahead-of", "behind-of"};
  if (what == "resource-pool") return flags.pool = value, flags;
  if (what == "ahead-of") return flags.ahead_of = value, flags;
  if (what == "behind-of") return flags.behind_of = value, flags;
  if (std::find(kKinds.begin(), kKinds.end(), what) == kKinds.end())
    return bad("\"" + what + "\" cannot be changed" + did_you_mean(what, kKinds));
  const bool good = what == "priority" ? number(flags.priority)
                    : what == "weight" ? number(flags.weight)
                                       : number(flags.max_slots);
  if (!good) return bad("\"" + value + "\" is no number");
  return flags;
}

Action declare_update_batch(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("CHANGE", *words,
                 "ID.what=value; what: priority, weight, max-slots, resource-pool, ahead-of, behind-of.")
      ->required();
  return [=](Session& session) -> Result<int> {
    std::vector<UpdateFlags> changes;
    // All words are parsed before the first call, so that a typing error changes nothing.
    for (const std::string& word : *words) {
      TRY_ASSIGN(changes.emplace_back(), parse_update(word));
    }
    TRY_ASSIGN(Client * client, session.client());
    v1::UpdateJobQueueRequest request;
    for (const UpdateFlags& each : changes) {
      TRY_ASSIGN(const auto one, to_request(*client, each));
      request.MergeFrom(one);
    }
    TRY(client->call(&JobStub::UpdateJobQueue, request));
    std::cout << "Updated " << changes.size() << (changes.size() == 1 ? " job\n" : " jobs\n");
    return 0;
  };
}

}  // namespace

Command job_command() {
  return {{"job", "j"},
          "See the queues, and move what stands in them.",
          {},
          {{{"list", "ls"}, "List what waits and runs, in the order of the queue.", declare_job_list},
           {{"update", "u"}, "Change priority, weight, limit, pool or place.", declare_update},
           {{"update-batch"}, "The same for several jobs, all or none.", declare_update_batch}}};
}

}  // namespace det::cli
