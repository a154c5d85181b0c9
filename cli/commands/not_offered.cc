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

}  // namespace det::cli
