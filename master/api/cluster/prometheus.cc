#include "master/api/cluster/prometheus.h"

#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "common/base/json.h"
#include "common/base/text.h"
#include "det/v1/prometheus.methods.h"
#include "master/db/queries/cluster.h"

namespace det::api {
namespace {

constexpr const char* kScrapeMethod = "/det.v1.PrometheusService/Scrape";
// Ports at which Determined AI expects the exporters (cAdvisor, DCGM) of agents.
constexpr const char* kCadvisorPort = "8080";
constexpr const char* kDcgmPort = "9400";

/// Figures of one resource pool.
struct PoolState {
  int agents = 0, slots = 0, used = 0, queued = 0, running = 0;
};

/// Copies from the core, so that the text is formatted off its thread.
struct CoreFigures {
  std::map<std::string, PoolState> pools;
  struct Allocation {
    std::string id, task, owner, state, pool;
    std::vector<std::string> devices;
  };
  std::vector<Allocation> allocations;
  std::vector<std::pair<std::string, std::int64_t>> jobs;  ///< job id, experiment
  std::vector<std::pair<std::int64_t, std::string>> labels;
  struct Agent {
    std::string id, pool, address;
    std::vector<std::string> uuids;  ///< by slot id
    std::set<int> out;               ///< slots that the agent has taken out of service
  };
  std::vector<Agent> agents;
};

CoreFigures::Allocation describe(const core::Core& core, const core::Allocation& allocation) {
  CoreFigures::Allocation out{.id = allocation.id.value,
                              .task = allocation.id.value.substr(0, allocation.id.value.rfind('.')),
                              .owner = allocation.task.as<CommandId>() ? "command" : name_of(allocation.task),
                              .state = std::string(core::allocation_state_name(allocation.state)),
                              .pool = allocation.pool,
                              .devices = {}};
  for (const core::AllocationPart& part : allocation.parts) {
    auto agent = core.agents().find(part.agent);
    if (agent == core.agents().end()) continue;
    for (const int slot : part.slots) {
      const auto& devices = agent->second.slots;
      if (static_cast<std::size_t>(slot) < devices.size() &&
          !devices[static_cast<std::size_t>(slot)].uuid.empty())
        out.devices.push_back(devices[static_cast<std::size_t>(slot)].uuid);
    }
  }
  return out;
}

/// Runs on the core's thread.
void look(const core::Core& core, CoreFigures& seen) {
  for (const auto& [id, agent] : core.agents()) {
    // Disconnected agents offer no slots.
    if (agent.session == 0) continue;
    PoolState& pool = seen.pools[agent.pool];
    ++pool.agents;
    pool.slots += static_cast<int>(agent.slots.size());
    seen.agents.push_back({id.value, agent.pool, agent.address, {}, {}});
    for (const core::Device& device : agent.slots) seen.agents.back().uuids.push_back(device.uuid);
    for (const auto& [slot, problem] : agent.slot_problems) seen.agents.back().out.insert(slot);
  }
  for (const auto& [id, allocation] : core.allocations()) {
    PoolState& pool = seen.pools[allocation.pool];
    pool.used += allocation.slot_count();
    ++pool.running;
    seen.allocations.push_back(describe(core, allocation));
  }
  // Pools without agents can have queues.
  for (const auto& [name, pool] : core.pools()) seen.pools[name].queued += pool.queued();
  for (const auto& [id, experiment] : core.experiments()) {
    seen.jobs.emplace_back(experiment.job_id, id.value);
    for (const std::string& label : experiment.config->labels) seen.labels.emplace_back(id.value, label);
  }
}

Result<std::shared_ptr<CoreFigures>> see(const Context& context) {
  auto seen = std::make_shared<CoreFigures>();
  TRY(context.loop.inspect([seen](const core::Core& core) { look(core, *seen); }));
  return seen;
}

/// Row counts of experiments, trials and commands by state.
Status add_counts(const Context& context, PromText& text) {
  // From the database: ended objects are not in the core.
  TRY_ASSIGN(const db::StateCounts counts, db::count_states(context.pool));
  const auto add = [&](const char* name, const char* noun,
                       const std::map<std::string, std::int64_t>& states) {
    text.metric(name, "gauge", ("Number of " + std::string(noun) + " by state.").c_str());
    for (const auto& [state, count] : states) text.sample({{"state", state}}, static_cast<double>(count));
  };
  add("det_experiments", "experiments", counts.experiments);
  add("det_trials", "trials", counts.trials);
  add("det_commands", "commands", counts.commands);
  return {};
}

void add_pools(const CoreFigures& seen, PromText& text) {
  const auto each = [&](const char* name, const char* help, int PoolState::*value) {
    text.metric(name, "gauge", help);
    for (const auto& [pool, state] : seen.pools) text.sample({{"pool", pool}}, state.*value);
  };
  each("det_agents", "Connected agents.", &PoolState::agents);
  each("det_slots", "Slots of connected agents.", &PoolState::slots);
  each("det_slots_used", "Slots that allocations hold.", &PoolState::used);
  each("det_queue_requests", "Trials and commands that wait for slots.", &PoolState::queued);
  each("det_allocations", "Trials and commands that have their slots.", &PoolState::running);
}

/// Relations between ids, with the names and labels of Determined AI, so that its dashboards work.
void add_relations(const CoreFigures& seen, PromText& text) {
  text.metric("det_allocation_id_task_id_task_actor", "gauge", "Which task an allocation is of.");
  for (const auto& one : seen.allocations)
    text.sample({{"allocation_id", one.id}, {"task_id", one.task}, {"task_actor", one.owner}}, 1);
  text.metric("det_container_id_allocation_id", "gauge", "What runs of an allocation.");
  for (const auto& one : seen.allocations)
    text.sample({{"container_id", one.id}, {"allocation_id", one.id}}, 1);
  text.metric("det_gpu_uuid_container_id", "gauge", "Which device an allocation holds.");
  for (const auto& one : seen.allocations)
    for (const std::string& uuid : one.devices)
      text.sample({{"gpu_uuid", uuid}, {"container_id", one.id}}, 1);
  text.metric("det_job_id_experiment_id", "gauge", "Which experiment a job is.");
  for (const auto& [job, id] : seen.jobs)
    text.sample({{"job_id", job}, {"experiment_id", std::to_string(id)}}, 1);
  text.metric("det_experiment_id_label", "gauge", "Labels of live experiments.");
  for (const auto& [id, label] : seen.labels)
    text.sample({{"experiment_id", std::to_string(id)}, {"label", label}}, 1);
}

/// State of the devices of connected agents. Values that a device does not support are left out.
void add_devices(const CoreFigures& seen, const DeviceReadings::Agents& readings, PromText& text) {
  const auto each = [&](const char* name, const char* help, const auto& value) {
    text.metric(name, "gauge", help);
    for (const CoreFigures::Agent& agent : seen.agents) {
      for (std::size_t i = 0; i < agent.uuids.size(); ++i) {
        const std::optional<double> found = value(agent, i);
        if (!found) continue;
        text.sample({{"agent", agent.id},
                     {"pool", agent.pool},
                     {"slot", std::to_string(i)},
                     {"gpu_uuid", agent.uuids[i]}},
                    *found);
      }
    }
  };
  each("det_slot_out_of_service", "1 if the agent has taken the slot out of service because of its device.",
       [](const CoreFigures::Agent& agent, std::size_t slot) -> std::optional<double> {
         return agent.out.contains(static_cast<int>(slot)) ? 1 : 0;
       });
  const auto reading = [&](const char* name, const char* help, bool (v1::DeviceReading::*has)() const,
                           double (v1::DeviceReading::*value)() const) {
    each(name, help, [&](const CoreFigures::Agent& agent, std::size_t slot) -> std::optional<double> {
      const v1::DeviceReading* const found = find_reading(readings, AgentId(agent.id), slot);
      if (!found || !(found->*has)()) return std::nullopt;
      return (found->*value)();
    });
  };
  using Reading = v1::DeviceReading;
  reading("det_gpu_utilization_ratio", "Part of the time in which a kernel ran.", &Reading::has_utilization,
          &Reading::utilization);
  reading("det_gpu_memory_used_bytes", "Memory in use.", &Reading::has_memory_used, &Reading::memory_used);
  reading("det_gpu_memory_total_bytes", "Memory of the device.", &Reading::has_memory_total,
          &Reading::memory_total);
  reading("det_gpu_temperature_celsius", "Temperature.", &Reading::has_temperature, &Reading::temperature);
  reading("det_gpu_power_watts", "Power draw.", &Reading::has_power, &Reading::power);
  reading("det_gpu_sm_clock_hertz", "Clock of the processors.", &Reading::has_sm_clock, &Reading::sm_clock);
  reading("det_gpu_memory_clock_hertz", "Clock of the memory.", &Reading::has_memory_clock,
          &Reading::memory_clock);
}

Result<std::string> state_text(const Context& context) {
  TRY_ASSIGN(const auto seen, see(context));
  PromText text;
  TRY(add_counts(context, text));
  add_pools(*seen, text);
  add_relations(*seen, text);
  add_devices(*seen, *context.readings->get(), text);
  return text.take();
}

void add_calls(const CallStats& stats, PromText& text) {
  text.metric("det_call_seconds", "histogram", "From the arrival of a call to its answer.");
  for (const auto& [name, method] : stats.methods()) {
    double count = 0;
    std::array<double, CallStats::kBounds.size() + 1> until{};
    for (std::size_t i = 0; i < until.size(); ++i)
      // Histogram buckets of Prometheus are cumulative.
      until[i] = count += static_cast<double>(method.buckets[i].load());
    // Methods that were never called are left out: there are over 150.
    if (count == 0) continue;
    const std::string label = name.substr(std::string_view("/det.v1.").size());
    for (std::size_t i = 0; i < until.size(); ++i) {
      // to_chars gives the shortest exact form, "0.005" rather than "0.005000".
      std::string bound = "+Inf";
      if (i < CallStats::kBounds.size()) {
        std::array<char, 32> digits;
        bound.assign(digits.data(),
                     std::to_chars(digits.data(), digits.data() + digits.size(), CallStats::kBounds[i]).ptr);
      }
      text.sample("_bucket", {{"method", label}, {"le", bound}}, until[i]);
    }
    text.sample("_sum", {{"method", label}}, static_cast<double>(method.micros.load()) / 1e6);
    text.sample("_count", {{"method", label}}, count);
  }
  text.metric("det_call_failures_total", "counter", "Calls that were refused or failed.");
  for (const auto& [name, method] : stats.methods()) {
    if (method.failed.load() != 0)
      text.sample({{"method", name.substr(std::string_view("/det.v1.").size())}},
                  static_cast<double>(method.failed.load()));
  }
}

std::string master_text(const Context& context) {
  PromText text;
  const auto one = [&](const char* name, const char* type, const char* help, double value) {
    text.metric(name, type, help);
    text.sample({}, value);
  };
  text.metric("det_build_info", "gauge", "The version that runs.");
  text.sample({{"version", context.settings.version}}, 1);
  const loop::Loop::Stats loop = context.loop.stats();
  one("det_core_steps_total", "counter", "Inputs that the core has taken.", static_cast<double>(loop.steps));
  one("det_core_step_seconds_total", "counter", "Time that the core has spent on them.", loop.step_seconds);
  one("det_core_queue", "gauge", "Inputs that wait for the core.", static_cast<double>(loop.queued));
  one("det_writer_depth", "gauge", "Groups of writes that are not durable yet.",
      static_cast<double>(loop.undurable));
  one("det_metric_reports_total", "counter", "Reports of metrics that became durable.",
      static_cast<double>(context.calls->metric_reports.load()));
  one("det_log_lines_total", "counter", "Lines of task logs that became durable.",
      static_cast<double>(context.calls->log_lines.load()));
  add_calls(*context.calls, text);
  return text.take();
}

Result<std::string> targets(const Context& context) {
  TRY_ASSIGN(const auto seen, see(context));
  Json list = Json::array();
  for (const CoreFigures::Agent& agent : seen->agents) {
    // IPv6 addresses need brackets.
    const std::string host =
        agent.address.find(':') == std::string::npos ? agent.address : "[" + agent.address + "]";
    list.push_back({{"targets", {host + ":" + kCadvisorPort, host + ":" + kDcgmPort}},
                    {"labels", {{"det_agent_id", agent.id}, {"det_resource_pool", agent.pool}}}});
  }
  return dump_json(list) + "\n";
}

/// One scrape. Runs on a worker and sends one message. Deletes itself.
class Scraping : public grpc::ServerWriteReactor<v1::ScrapeResponse> {
 public:
  Scraping(const Context& context, Credentials credentials, const Unread<v1::ScrapeRequest>& request)
      : context_(context), credentials_(std::move(credentials)), bytes_(request.bytes) {
    if (!context_.pools.read.try_post([this] { run(); })) Finish(to_grpc(busy()));
  }
  void OnWriteDone(bool ok) override { Finish(ok ? grpc::Status::OK : grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }

 private:
  void run() {
    auto text = answer();
    if (!text) return Finish(to_grpc(text.error()));
    response_.set_chunk(std::move(*text));
    StartWrite(&response_);
  }
  Result<std::string> answer() {
    TRY_ASSIGN(const auto admitted,
               read_authorized<v1::ScrapeRequest>(context_, kScrapeMethod, credentials_, bytes_));
    const std::string& what = admitted.request->what();
    if (what == "state") return state_text(context_);
    if (what == "master") return master_text(context_);
    if (what == "targets") return targets(context_);
    return fail(Code::kInvalidArgument, "what: state, master or targets was expected");
  }

  const Context& context_;
  const Credentials credentials_;
  const grpc::ByteBuffer bytes_;
  v1::ScrapeResponse response_;
};

}  // namespace

void PromText::metric(const std::string& name, const char* type, const char* help) {
  name_ = name;
  text_ += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

void PromText::sample(const char* suffix, const Labels& labels, double value) {
  text_ += name_ + suffix;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    text_ += (i == 0 ? "{" : ",") + labels[i].first + "=\"";
    for (const char c : make_utf8(labels[i].second)) {
      // The format escapes backslash, quote and line feed.
      if (c == '\\' || c == '"') text_ += '\\';
      text_ += c == '\n' ? std::string("\\n") : std::string(1, c);
    }
    text_ += "\"";
  }
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  text_ += (labels.empty() ? " " : "} ") + std::string(digits.data(), end) + "\n";
}

PrometheusService::PrometheusService(const Context& context)
    : Service(context, v1::PrometheusService::full_name) {
  server_stream(v1::PrometheusService::Scrape, &PrometheusService::Scrape);
}

grpc::ServerWriteReactor<v1::ScrapeResponse>* PrometheusService::Scrape(
    grpc::CallbackServerContext* call, const Unread<v1::ScrapeRequest>& request) {
  return new Scraping(context_, read_credentials(*call), request);
}

}  // namespace det::api
