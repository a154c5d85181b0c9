#include "cli/commands/not_offered.h"

namespace det::cli {

Command not_offered(std::vector<std::string> names, const std::string& why) {
  return {std::move(names), "Not offered: " + why + ".", [why](CLI::App& app) -> Action {
            // Any arguments are accepted: the reason must not be hidden by a usage error.
            app.fallthrough(false);
            app.allow_extras();
            return
                [why](Session&) -> Result<int> { return fail(Code::kUnimplemented, "not offered: " + why); };
          }};
}

std::vector<Command> not_offered_nouns() {
  return {not_offered({"notebook"}, "notebooks are not supported; run an experiment"),
          not_offered({"shell"}, "shells are not supported; log in to the agent's machine"),
          not_offered({"tensorboard"},
                      "the web UI and `det experiment watch` draw metrics; `det trial download-files ID "
                      "tensorboard` fetches event files and traces"),
          not_offered({"resource-pool", "rp"}, "agents define the pools, and every workspace may use them")};
}

}  // namespace det::cli
