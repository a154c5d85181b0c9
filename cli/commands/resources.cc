// `det resources`: slot usage and slot capacity over time.
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/usage.grpc.pb.h"

namespace det::cli {
namespace {

using UsageStub = v1::UsageService::Stub;

/// A half-open interval [START, END).
struct RawFlags {
  std::string from, to;
  bool json = false;
  void declare(CLI::App& app) {
    app.add_option("START", from, "A date, or a time (RFC 3339).")->required();
    app.add_option("END", to, "Likewise; not with it.")->required();
    app.add_flag("--json", json, "Print as JSON.");
  }
};

/// Parses a date or an RFC 3339 time into `target`. Errors: kInvalidArgument.
Status set_usage_time(const std::string& text, const char* name, google::protobuf::Timestamp* target) {
  // A date is its first instant in UTC.
  const auto time = parse_rfc3339(text.size() == 10 ? text + "T00:00:00Z" : text);
  if (!time) return fail(Code::kInvalidArgument, std::string(name) + ": " + time.error().message);
  target->set_seconds(time->micros / 1'000'000);
  target->set_nanos(static_cast<std::int32_t>(time->micros % 1'000'000 * 1000));
  return {};
}

/// Fetches allocations and capacity of the interval.
Result<v1::ResourceAllocationRawResponse> between(Session& session, const RawFlags& flags) {
  v1::ResourceAllocationRawRequest request;
  TRY(set_usage_time(flags.from, "START", request.mutable_timestamp_after()));
  TRY(set_usage_time(flags.to, "END", request.mutable_timestamp_before()));
  TRY_ASSIGN(Client * client, session.client());
  return client->call(&UsageStub::ResourceAllocationRaw, request);
}

/// Prints one CSV line per allocation.
Action declare_raw(CLI::App& app) {
  auto flags = std::make_shared<RawFlags>();
  flags->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(const auto response, between(session, *flags));
    if (flags->json) {
      TRY_ASSIGN(const Json list, list_to_json(response.resource_entries()));
      print_json(list);
      return 0;
    }
    Table table{{"experiment_id", "kind", "username", "labels", "resource_pool", "slots", "start_time",
                 "end_time", "seconds"},
                {}};
    for (const v1::ResourceAllocationRawEntry& entry : response.resource_entries()) {
      table.rows.push_back(
          {entry.experiment_id() == 0 ? "" : std::to_string(entry.experiment_id()), entry.kind(),
           entry.username(), join({entry.labels().begin(), entry.labels().end()}, ","), entry.resource_pool(),
           std::to_string(entry.slots()), time_text(entry.start_time(), true),
           entry.has_end_time() ? time_text(entry.end_time(), true) : "", number_text(entry.seconds())});
    }
    std::cout << to_csv(table);
    return 0;
  };
}

/// Prints one CSV line per period in which an agent offered slots.
Action declare_capacity(CLI::App& app) {
  auto flags = std::make_shared<RawFlags>();
  flags->declare(app);
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(const auto response, between(session, *flags));
    if (flags->json) {
      TRY_ASSIGN(const Json list, list_to_json(response.capacity()));
      print_json(list);
      return 0;
    }
    Table table{{"agent_id", "resource_pool", "slots", "start_time", "end_time", "seconds"}, {}};
    for (const v1::CapacityEntry& entry : response.capacity()) {
      table.rows.push_back({entry.agent_id(), entry.resource_pool(), std::to_string(entry.slots()),
                            time_text(entry.start_time(), true),
                            entry.has_end_time() ? time_text(entry.end_time(), true) : "",
                            number_text(entry.seconds())});
    }
    std::cout << to_csv(table);
    return 0;
  };
}

/// An interval of whole days, both inclusive.
struct AggregatedFlags {
  std::string from, to;
  bool json = false, monthly = false;
};

/// Prints slot-seconds by label, experiment, pool and user, per day or month.
Action declare_aggregated(CLI::App& app) {
  auto flags = std::make_shared<AggregatedFlags>();
  app.add_option("START", flags->from, "The first day, like 2026-01-31.")->required();
  app.add_option("END", flags->to, "The last day.")->required();
  app.add_flag("--monthly", flags->monthly, "By month, not by day.");
  app.add_flag("--json", flags->json, "Print as JSON.");
  return [=](Session& session) -> Result<int> {
    v1::ResourceAllocationAggregatedRequest request;
    request.set_start_date(flags->from);
    request.set_end_date(flags->to);
    request.set_period(flags->monthly ? v1::RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY
                                      : v1::RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY);
    TRY_ASSIGN(Client * client, session.client());
    TRY_ASSIGN(const auto response, client->call(&UsageStub::ResourceAllocationAggregated, request));
    if (flags->json) {
      TRY_ASSIGN(const Json list, list_to_json(response.resource_entries()));
      print_json(list);
      return 0;
    }
    Table table{{"aggregation_type", "aggregation_key", "date", "seconds"}, {}};
    for (const v1::ResourceAllocationAggregatedEntry& entry : response.resource_entries()) {
      const auto add = [&](const std::string& type, const std::string& key, double seconds) {
        table.rows.push_back({type, key, entry.period_start(), number_text(seconds)});
      };
      // Copies into a sorted map: protobuf maps have no order.
      const auto add_all = [&](const std::string& type,
                               const google::protobuf::Map<std::string, double>& map) {
        for (const auto& [key, seconds] : std::map<std::string, double>(map.begin(), map.end()))
          add(type, key, seconds);
      };
      add_all("experiment_label", entry.by_experiment_label());
      add_all("experiment_id", entry.by_experiment_id());
      add_all("resource_pool", entry.by_resource_pool());
      add_all("username", entry.by_username());
      add("total", "total", entry.seconds());
    }
    std::cout << to_csv(table);
    return 0;
  };
}

}  // namespace

Command resources_command() {
  return {{"resources", "res"},
          "Say who held slots, and for how long.",
          {},
          {{{"raw"}, "Every allocation, as CSV.", declare_raw},
           {{"capacity"}, "The slots that agents brought, and for how long, as CSV.", declare_capacity},
           {{"aggregated", "agg"},
            "Slot-seconds by user, label, pool and experiment, as CSV.",
            declare_aggregated}}};
}

}  // namespace det::cli
