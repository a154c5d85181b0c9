// Options of `det experiment set log-retention` and `det trial set log-retention`.
#pragma once

#include <iostream>
#include <string>

#include "cli/command.h"

namespace det::cli {

/// One of --days and --forever.
struct LogRetention {
  int days = 0;
  bool forever = false;

  void declare(CLI::App& app) {
    CLI::Option* const limit =
        app.add_option("--days", days, "Days to keep the logs after the end of each trial, up to 32767.")
            ->check(CLI::Range(0, 32767));
    CLI::Option* const keep = app.add_flag("--forever", forever, "Keep the logs.")->excludes(limit);
    app.final_callback([limit, keep] {
      if (limit->count() + keep->count() == 0) throw CLI::RequiredError("--days or --forever");
    });
  }
  /// Returns the number for the API; -1 keeps the logs.
  int sent() const { return forever ? -1 : days; }
  /// Prints what was set. `object`: "trial 7".
  void print(const std::string& object) const {
    std::cout << "Logs of " << object << " are kept "
              << (forever ? std::string("forever") : "for " + std::to_string(days) + " days after their end")
              << '\n';
  }
};

}  // namespace det::cli
