// `det resources`: slot usage and slot capacity over time.
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "common/base/text.h"
#include "det/v1/usage.methods.h"

namespace det::cli {
namespace {

/// A half-open interval [START, END).
struct UsageIntervalOptions {
  std::string from, to;
  bool json = false;
  void declare(CLI::App& app) {
    app.add_option("START", from, "Begin: a date or a time (RFC 3339).")->required();
    app.add_option("END", to, "End, exclusive: a date or a time (RFC 3339).")->required();
    app.add_flag("--json", json, "Print as JSON.");
  }
};

/// Prints `table` as CSV, or the messages as JSON.
template <typename Messages>
Status print_usage(const Table& table, const Messages& messages, bool json) {
  return Output{.csv = !json, .json = json}.print(table, [&] { return list_to_json(messages); });
}

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
Result<v1::ResourceAllocationRawResponse> fetch_usage(Session& session, const UsageIntervalOptions& options) {
  v1::ResourceAllocationRawRequest request;
  TRY(set_usage_time(options.from, "START", request.mutable_timestamp_after()));
  TRY(set_usage_time(options.to, "END", request.mutable_timestamp_before()));
  TRY_ASSIGN(Client * client, session.client());
  return client->call(v1::UsageService::ResourceAllocationRaw, request);
}

/// Prints one CSV line per allocation.
Status print_allocations(Session& session, const UsageIntervalOptions& options) {
  TRY_ASSIGN(const auto response, fetch_usage(session, options));
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
  return print_usage(table, response.resource_entries(), options.json);
}

/// Prints one CSV line per period in which an agent offered slots.
Status print_capacity(Session& session, const UsageIntervalOptions& options) {
  TRY_ASSIGN(const auto response, fetch_usage(session, options));
  Table table{{"agent_id", "resource_pool", "slots", "start_time", "end_time", "seconds"}, {}};
  for (const v1::CapacityEntry& entry : response.capacity()) {
    table.rows.push_back({entry.agent_id(), entry.resource_pool(), std::to_string(entry.slots()),
                          time_text(entry.start_time(), true),
                          entry.has_end_time() ? time_text(entry.end_time(), true) : "",
                          number_text(entry.seconds())});
  }
  return print_usage(table, response.capacity(), options.json);
}

/// An interval of whole days, both inclusive.
struct UsageDaysOptions {
  std::string from, to;
  bool json = false, monthly = false;
  void declare(CLI::App& app) {
    app.add_option("START", from, "First day, such as 2026-01-31.")->required();
    app.add_option("END", to, "Last day.")->required();
    app.add_flag("--monthly", monthly, "Sum by month (default: by day).");
    app.add_flag("--json", json, "Print as JSON.");
  }
};

/// Prints slot-seconds by label, experiment, pool and user, per day or month.
Status print_aggregated_usage(Client& client, const UsageDaysOptions& options) {
  v1::ResourceAllocationAggregatedRequest request;
  request.set_start_date(options.from);
  request.set_end_date(options.to);
  request.set_period(options.monthly ? v1::RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY
                                     : v1::RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY);
  TRY_ASSIGN(const auto response, client.call(v1::UsageService::ResourceAllocationAggregated, request));
  Table table{{"aggregation_type", "aggregation_key", "date", "seconds"}, {}};
  for (const v1::ResourceAllocationAggregatedEntry& entry : response.resource_entries()) {
    const auto add = [&](const std::string& type, const std::string& key, double seconds) {
      table.rows.push_back({type, key, entry.period_start(), number_text(seconds)});
    };
    // Copies into a sorted map: protobuf maps have no order.
    const auto add_all = [&](const std::string& type, const google::protobuf::Map<std::string, double>& map) {
      for (const auto& [key, seconds] : std::map<std::string, double>(map.begin(), map.end()))
        add(type, key, seconds);
    };
    add_all("experiment_label", entry.by_experiment_label());
    add_all("experiment_id", entry.by_experiment_id());
    add_all("resource_pool", entry.by_resource_pool());
    add_all("username", entry.by_username());
    add("total", "total", entry.seconds());
  }
  return print_usage(table, response.resource_entries(), options.json);
}

}  // namespace

Command resources_command() {
  return {{"resources", "res"},
          "Show slot usage and slot capacity.",
          {},
          {{{"raw"}, "Print all allocations as CSV.", action(print_allocations)},
           {{"capacity"}, "Print the slots that agents offered as CSV.", action(print_capacity)},
           {{"aggregated", "agg"},
            "Print slot-seconds by user, label, pool and experiment as CSV.",
            action(print_aggregated_usage)}}};
}

}  // namespace det::cli
