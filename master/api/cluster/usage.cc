#include "master/api/cluster/usage.h"

#include <chrono>

#include "common/base/text.h"
#include "det/v1/usage.methods.h"
#include "master/api/convert/convert.h"
#include "master/db/queries/usage.h"

namespace det::api {
namespace {

// A little more than ten years in months, and than three years in days.
constexpr int kMaxUsageDays = 3700, kMaxDailyUsageDays = 1100;

int digits(const std::string& text, std::size_t at, std::size_t count) {
  int value = 0;
  for (std::size_t i = at; i < at + count; ++i) value = value * 10 + (text[i] - '0');
  return value;
}

/// Parses a date such as "2026-01-31", from 1970 on.
Result<std::chrono::sys_days> read_date(const std::string& field, const std::string& text) {
  // The database gets the text, so its form is checked strictly.
  bool shape = text.size() == 10;
  for (std::size_t i = 0; shape && i < text.size(); ++i)
    shape = i == 4 || i == 7 ? text[i] == '-' : text[i] >= '0' && text[i] <= '9';
  if (shape) {
    const std::chrono::year_month_day date{std::chrono::year(digits(text, 0, 4)),
                                           std::chrono::month(static_cast<unsigned>(digits(text, 5, 2))),
                                           std::chrono::day(static_cast<unsigned>(digits(text, 8, 2)))};
    if (date.ok() && date.year() >= std::chrono::year(1970)) return std::chrono::sys_days(date);
  }
  return fail(Code::kInvalidArgument,
              field + ": a date like 2026-01-31 was expected, not \"" + make_utf8(text) + "\"");
}

void fill(const std::map<std::string, double>& from, google::protobuf::Map<std::string, double>* out) {
  for (const auto& [key, seconds] : from) (*out)[key] = seconds;
}

}  // namespace

UsageService::UsageService(const Context& context) : Service(context, v1::UsageService::full_name) {
  unary(v1::UsageService::ResourceAllocationRaw, &UsageService::ResourceAllocationRaw);
  unary(v1::UsageService::ResourceAllocationAggregated, &UsageService::ResourceAllocationAggregated);
}

Status UsageService::ResourceAllocationRaw(const Caller& caller,
                                           const v1::ResourceAllocationRawRequest& request,
                                           v1::ResourceAllocationRawResponse* response) {
  if (!request.has_timestamp_after() || !request.has_timestamp_before())
    return fail(Code::kInvalidArgument, "timestamp_after and timestamp_before: say from when to when");
  const WallTime from = from_proto(request.timestamp_after()), to = from_proto(request.timestamp_before());
  if (to.micros < from.micros)
    return fail(Code::kInvalidArgument, "timestamp_before: is before timestamp_after");
  TRY_ASSIGN(const auto entries,
             db::usage_entries(context_.pool, from, to, caller.grants.visible(), request.without_slots()));
  for (const db::UsageEntry& entry : entries) {
    v1::ResourceAllocationRawEntry* out = response->add_resource_entries();
    // Commands belong to no experiment.
    out->set_kind(entry.experiment == 0 ? "command" : "training");
    to_proto(entry.started, out->mutable_start_time());
    if (entry.ended) to_proto(*entry.ended, out->mutable_end_time());
    out->set_experiment_id(static_cast<int>(entry.experiment));
    out->set_username(entry.username);
    out->set_user_id(static_cast<int>(entry.user.value));
    for (const std::string& label : entry.labels) out->add_labels(label);
    out->set_seconds(entry.seconds);
    out->set_slots(entry.slots);
    out->set_resource_pool(entry.pool);
    out->set_allocation_id(entry.allocation.value);
    out->set_workspace_name(entry.workspace);
    out->set_task_type(entry.task_type);
  }
  // Capacity of all agents, as a reference for the usage.
  TRY_ASSIGN(const auto capacity, db::capacity_entries(context_.pool, from, to));
  for (const db::CapacityEntry& entry : capacity) {
    v1::CapacityEntry* out = response->add_capacity();
    out->set_agent_id(entry.agent);
    out->set_resource_pool(entry.pool);
    out->set_slots(entry.slots);
    to_proto(entry.started, out->mutable_start_time());
    if (entry.ended) to_proto(*entry.ended, out->mutable_end_time());
    out->set_seconds(entry.seconds);
  }
  return {};
}

Status UsageService::ResourceAllocationAggregated(const Caller& caller,
                                                  const v1::ResourceAllocationAggregatedRequest& request,
                                                  v1::ResourceAllocationAggregatedResponse* response) {
  TRY_ASSIGN(const auto first, read_date("start_date", request.start_date()));
  TRY_ASSIGN(const auto last, read_date("end_date", request.end_date()));
  if (last < first) return fail(Code::kInvalidArgument, "end_date: is before start_date");
  if ((last - first).count() > kMaxUsageDays)
    return fail(Code::kInvalidArgument, "end_date: at most ten years at once");
  const bool monthly = request.period() == v1::RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY;
  if (!monthly && (last - first).count() >= kMaxDailyUsageDays)
    return fail(Code::kInvalidArgument, "end_date: at most " + std::to_string(kMaxDailyUsageDays) +
                                            " days at once; ask for months or for less time");
  TRY_ASSIGN(const auto periods, db::usage_periods(context_.pool, request.start_date(), request.end_date(),
                                                   monthly, caller.grants.visible()));
  for (const db::UsagePeriod& period : periods) {
    v1::ResourceAllocationAggregatedEntry* out = response->add_resource_entries();
    // Months are shown as "2026-01".
    out->set_period_start(monthly ? period.start.substr(0, 7) : period.start);
    out->set_period(monthly ? v1::RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY
                            : v1::RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY);
    out->set_seconds(period.total);
    fill(period.by_user, out->mutable_by_username());
    fill(period.by_label, out->mutable_by_experiment_label());
    fill(period.by_pool, out->mutable_by_resource_pool());
    fill(period.by_experiment, out->mutable_by_experiment_id());
    fill(period.capacity, out->mutable_capacity_by_resource_pool());
  }
  return {};
}

}  // namespace det::api
