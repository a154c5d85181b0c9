#include "master/http/old_routes.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "common/base/text.h"

namespace det::http {
namespace {

/// One line of RFC 4180.
std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    if (!line.empty() || &cell != &cells.front()) line += ',';
    if (cell.find_first_of(",\"\r\n") == std::string::npos) {
      line += cell;
      continue;
    }
    line += '"';
    for (const char c : cell) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + '\n';
}

std::string cell_of(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : dump_json(value);
}

/// A comma within a label is escaped, because commas separate the labels of a cell.
std::string escaped_label(const std::string& label) {
  std::string text;
  for (const char c : label) {
    if (c == '\\' || c == ',') text += '\\';
    text += c;
  }
  return text;
}

std::string task_map(const Json& answer) { return dump_json(answer.at("allocationIdToSummary")) + "\n"; }

std::string raw_csv(const Json& answer) {
  std::string text =
      csv_line({"experiment_id", "kind", "username", "labels", "slots", "start_time", "end_time", "seconds"});
  for (const Json& entry : answer.at("resourceEntries")) {
    std::vector<std::string> labels;
    for (const Json& label : entry.at("labels")) labels.push_back(escaped_label(label.get<std::string>()));
    text +=
        csv_line({cell_of(entry.at("experimentId")), cell_of(entry.at("kind")), cell_of(entry.at("username")),
                  join(labels, ","), cell_of(entry.at("slots")), cell_of(entry.at("startTime")),
                  cell_of(entry.at("endTime")), std::to_string(entry.at("seconds").get<double>())});
  }
  return text;
}

std::string allocations_csv(const Json& answer) {
  std::string text =
      csv_line({"allocation_id", "task_type", "username", "workspace_name", "experiment_id", "slots",
                "start_time", "end_time", "imagepulling_time", "slot_hours", "resource_pool"});
  for (const Json& entry : answer.at("resourceEntries")) {
    const bool command = entry.at("kind") == "command";
    const double hours = entry.at("seconds").get<double>() * entry.at("slots").get<double>() / 3600;
    text += csv_line({cell_of(entry.at("allocationId")), cell_of(entry.at("taskType")),
                      cell_of(entry.at("username")), cell_of(entry.at("workspaceName")),
                      command ? "" : cell_of(entry.at("experimentId")), cell_of(entry.at("slots")),
                      cell_of(entry.at("startTime")), cell_of(entry.at("endTime")),
                      "0.0",  // no images are pulled
                      std::to_string(hours), cell_of(entry.at("resourcePool"))});
  }
  return text;
}

std::string aggregated_csv(const Json& answer) {
  constexpr std::pair<const char*, const char*> kKinds[] = {{"experiment_label", "byExperimentLabel"},
                                                            {"username", "byUsername"},
                                                            {"resource_pool", "byResourcePool"}};
  std::string text = csv_line({"aggregation_type", "aggregation_key", "date", "seconds"});
  for (const Json& entry : answer.at("resourceEntries")) {
    const std::string date = cell_of(entry.at("periodStart"));
    for (const auto& [kind, field] : kKinds)
      for (const auto& [key, seconds] : entry.at(field).items())
        text += csv_line({kind, key, date, std::to_string(seconds.get<double>())});
    text += csv_line({"total", "total", date, std::to_string(entry.at("seconds").get<double>())});
  }
  return text;
}

constexpr OldRoute kRoutes[] = {
    {"/tasks", "/api/v1/tasks", "", "application/json", task_map},
    {"/resources/allocation/raw", "/api/v1/resources/allocation/raw", "", "text/csv", raw_csv},
    {"/resources/allocation/allocations-csv", "/api/v1/resources/allocation/raw", "without_slots=true",
     "text/csv", allocations_csv},
    {"/resources/allocation/aggregated", "/api/v1/resources/allocation/aggregated", "", "text/csv",
     aggregated_csv},
};

class Converted : public Exchange {
 public:
  Converted(std::shared_ptr<Exchange> inner, const OldRoute& route)
      : inner_(std::move(inner)), route_(route) {}
  void respond(Response response) override {
    if (response.status != 200) return inner_->respond(std::move(response));
    const auto answer = parse_json(response.body, {.bytes = response.body.size(), .depth = 64});
    if (!answer) return inner_->respond(message_response(500, "the answer cannot be read"));
    inner_->respond({200,
                     {{"Content-Type", std::string(route_.content_type)}, {"Cache-Control", "no-store"}},
                     route_.convert(*answer)});
  }
  void begin(Response head, std::function<void()> closed) override {
    inner_->begin(std::move(head), std::move(closed));
  }
  void write(std::string piece, std::function<void(bool)> done) override {
    inner_->write(std::move(piece), std::move(done));
  }
  void end() override { inner_->end(); }

 private:
  const std::shared_ptr<Exchange> inner_;
  const OldRoute& route_;
};

}  // namespace

const OldRoute* find_old_route(std::string_view path) {
  for (const OldRoute& route : kRoutes)
    if (route.path == path) return &route;
  return nullptr;
}

std::shared_ptr<Exchange> converted(std::shared_ptr<Exchange> inner, const OldRoute& route) {
  return std::make_shared<Converted>(std::move(inner), route);
}

}  // namespace det::http
