// `det preview-search`: shows how long the trials of a search would train. Needs no master.
#include <iostream>

#include "cli/command.h"
#include "cli/output/print.h"
#include "cli/submit/search_config.h"
#include "common/searcher/simulate.h"
#include "common/yaml/yaml.h"

namespace det::cli {
namespace {

/// Prints the search configuration with all defaults, and a table of trials by length.
Result<int> preview_search(const std::string& path) {
  TRY_ASSIGN(const auto config, read_search_config(path, {}));
  TRY_ASSIGN(const auto lines, searcher::preview(*config));
  std::cout << "Using search configuration:\n"
            << to_yaml(config->resolved.value("searcher", Json::object())) << '\n';
  const std::string unit = config->searcher.time_metric.empty() ? "batches" : config->searcher.time_metric;
  Table table{{"Trials", "Training Time"}, {}};
  for (const searcher::PreviewLine& line : lines) {
    table.rows.push_back(
        {std::to_string(line.trials),
         line.length == 0 ? "train to completion" : printable(std::to_string(line.length) + " " + unit)});
  }
  std::cout << shown(table);
  return 0;
}

}  // namespace

Command preview_search_command() {
  return {
      {"preview-search"}, "Show how many trials a search would train how long.", [](CLI::App& app) -> Action {
        auto path = std::make_shared<std::string>();
        app.add_option("CONFIG", *path, "The experiment's configuration (YAML).")->required();
        return [=](Session&) { return preview_search(*path); };
      }};
}

}  // namespace det::cli
