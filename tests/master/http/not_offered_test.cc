// Calls that return 501, and the OpenAPI description of the calls that exist.
#include "master/http/not_offered.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "det/v1/experiment.pb.h"
#include "master/http/old_routes.h"
#include "master/http/openapi.h"
#include "master/http/routes.h"
#include "test_paths.h"

namespace det::http {
namespace {

/// The trimmed cells of a table's rows. `separator` is '|' or a tab.
std::vector<std::vector<std::string>> rows_of(const std::string& path, char separator) {
  std::vector<std::vector<std::string>> rows;
  const std::string text = read_file(path).value();
  for (const std::string& line : split(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> cells;
    for (const std::string& cell : split(line, separator)) cells.emplace_back(trim(cell));
    rows.push_back(std::move(cells));
  }
  return rows;
}

}  // namespace

TEST_CASE("the calls that return 501 match the README, with the same reasons") {
  std::set<std::string> told, known;
  for (const auto& cells : rows_of(source_path("/master/http/README.md"), '|')) {
    if (cells.size() != 5 || !cells[2].starts_with('`')) continue;
    told.insert(cells[1] + " " + cells[2].substr(1, cells[2].size() - 2) + " " + cells[3]);
  }
  for (const NotOffered& one : not_offered())
    known.insert(std::string(one.verb) + " " + std::string(one.path) + " " + std::string(one.why));
  CHECK(told == known);
  CHECK(known.size() == not_offered().size());
}

TEST_CASE("every endpoint of Determined is offered, served elsewhere, or returns 501") {
  std::set<std::string> missing, counted;
  for (const auto& cells : rows_of(source_path("/tests/master/http/data/endpoints.tsv"), '\t')) {
    REQUIRE(cells.size() == 3);
    counted.insert(cells[0] + cells[1]);
    if (cells[2] == "501") missing.insert(cells[0] + " " + cells[1]);
  }
  CHECK(counted.size() == 260);
  std::set<std::string> known;
  for (const NotOffered& one : not_offered())
    known.insert(std::string(one.verb) + " " + std::string(one.path));
  CHECK(missing == known);
}

TEST_CASE("older paths of Determined return responses of the API in their form") {
  const auto convert = [](const char* path, const char* answer) {
    const OldRoute* route = find_old_route(path);
    REQUIRE(route != nullptr);
    return route->convert(parse_json(answer).value());
  };
  CHECK(convert("/tasks", R"({"allocationIdToSummary":{"a.1":{"name":"Trial 1"}}})") ==
        "{\"a.1\":{\"name\":\"Trial 1\"}}\n");
  CHECK(convert(
            "/resources/allocation/raw",
            R"({"resourceEntries":[{"experimentId":3,"kind":"training","username":"a\"b","labels":["x,y","z"],
                    "slots":2,"startTime":"2026-01-01T00:00:00Z","endTime":null,"seconds":1.5}]})") ==
        "experiment_id,kind,username,labels,slots,start_time,end_time,seconds\n"
        "3,training,\"a\"\"b\",\"x\\,y,z\",2,2026-01-01T00:00:00Z,,1.500000\n");
  CHECK(
      convert("/resources/allocation/allocations-csv",
              R"({"resourceEntries":[{"allocationId":"c.1","experimentId":0,"kind":"command","username":"ada",
                    "taskType":"NOTEBOOK","workspaceName":"Lab","labels":[],"slots":2,"startTime":"2026-01-01T00:00:00Z","endTime":null,
                    "seconds":1800,"resourcePool":"default"}]})") ==
      "allocation_id,task_type,username,workspace_name,experiment_id,slots,start_time,end_time,"
      "imagepulling_time,slot_hours,resource_pool\n"
      "c.1,NOTEBOOK,ada,Lab,,2,2026-01-01T00:00:00Z,,0.0,1.000000,default\n");
  CHECK(convert("/resources/allocation/aggregated",
                R"({"resourceEntries":[{"periodStart":"2026-01","seconds":7,"byExperimentLabel":{},
                    "byUsername":{"ada":7},"byResourcePool":{}}]})") ==
        "aggregation_type,aggregation_key,date,seconds\nusername,ada,2026-01,7.000000\n"
        "total,total,2026-01,7.000000\n");
  CHECK(find_old_route("/resources") == nullptr);
}

TEST_CASE("a path of the table matches with any parameter, and no other path matches") {
  REQUIRE(find_not_offered("GET", "/api/v1/projects/3/metadata/abc") != nullptr);
  CHECK(find_not_offered("GET", "/api/v1/projects/3/metadata/") == nullptr);
  CHECK(find_not_offered("PUT", "/api/v1/projects/3/metadata/abc") == nullptr);
  CHECK(find_not_offered("GET", "/api/v1/nothing") == nullptr);
}

TEST_CASE("the OpenAPI description has every route with its parameters and responses") {
  const std::vector services{v1::GetExperimentRequest::descriptor()->file()->service(0)};
  const Json api = parse_json(openapi_json(services), {.bytes = 8 << 20, .depth = 64}).value();
  std::size_t described = 0;
  for (const auto& [path, verbs] : api["paths"].items()) described += verbs.size();
  CHECK(described == Routes(services).all().size());
  const Json& list = api["paths"]["/api/v1/experiments"]["get"];
  CHECK(list["operationId"] == "GetExperiments");
  std::set<std::string> names;
  for (const Json& parameter : list["parameters"]) names.insert(parameter["name"].get<std::string>());
  CHECK(names.contains("labels"));
  CHECK(names.contains("experimentIdFilter.gt"));
  CHECK(api["definitions"]["v1Experiment"]["properties"]["checkpointSize"]["type"] == "string");
  // Every reference resolves.
  const std::string text = dump_json(api);
  const std::string mark = "\"#/definitions/";
  for (std::size_t at = text.find(mark); at != text.npos; at = text.find(mark, at + 1)) {
    const std::size_t begin = at + mark.size();
    const std::string name = text.substr(begin, text.find('"', begin) - begin);
    CAPTURE(name);
    CHECK(api["definitions"].contains(name));
  }
}

}  // namespace det::http
