// Program det-agent: reads the settings, then creates and runs an Agent.
#include <signal.h>

#include <filesystem>
#include <iostream>

#include "agent/agent.h"
#include "common/base/files.h"
#include "common/base/log.h"
#include "common/build/recipe.h"

namespace {

constexpr int kUsage = 2;

int refuse(const det::Error& error, int code) {
  std::cerr << "det-agent: " << error.message << "\n";
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const det::OptionTable& table = det::agent::option_table();
  auto options = det::Options::load(table, {argv + 1, argv + argc}, det::process_environment());
  if (!options) return refuse(options.error(), kUsage);
  if (options->help()) return std::cout << det::help_text(table), 0;
  const auto prefix = std::filesystem::path(det::program_path()).parent_path().parent_path();
  if (options->version())
    return std::cout << "det-agent " DET_VERSION << det::build::library_note(prefix.string()) << "\n", 0;
  if (options->sample()) return std::cout << det::sample_config(table), 0;
  auto settings = det::agent::read_settings(*options);
  if (!settings) return refuse(settings.error(), kUsage);
  if (auto logging = det::init_log(settings->log); !logging) return refuse(logging.error(), 1);
  // A closed connection is an error of the write, not the end of the agent.
  ::signal(SIGPIPE, SIG_IGN);
  auto agent = det::agent::Agent::create(std::move(*settings), prefix.string());
  if (!agent) return refuse(agent.error(), 1);
  (*agent)->run();
  return 0;
}
