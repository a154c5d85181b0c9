// `det dev`: local training that follows the edits of a trial, and tools for calling the HTTP API by hand.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <iostream>

#include "cli/command.h"
#include "cli/dev/dev_session.h"
#include "cli/output/print.h"
#include "common/base/text.h"

namespace det::cli {
namespace {

Status print_auth_token(Client& client, const NoOptions&) {
  std::cout << client.token() << '\n';
  return {};
}

/// Writes the text to the descriptor. Errors: kInternal.
Status write_all(int file, const std::string& text) {
  if (::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size())) return {};
  return fail(Code::kInternal,
              std::string("cannot write the token to the memory file: ") + std::strerror(errno));
}

/// Returns the command line as a user would type it, quoted for a shell. It contains no token.
std::string shown(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const std::string& word : command) {
    const bool plain =
        !word.empty() && word.find_first_of(" \t\n\"'\\$&|;<>()*?[]{}~`#!") == std::string::npos;
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    words.push_back(plain ? word : quoted + "'");
  }
  return join(words, " ");
}

struct CurlOptions {
  std::vector<std::string> words;  ///< arguments of curl
  bool show = false;
  void declare(CLI::App& app) {
    app.add_flag("-x,--show-command", show,
                 "Print the curl command to stderr first. It reads the token from a file.");
    app.footer(
        "All further arguments are passed to curl. A path such as /api/v1/me is relative to the master.");
    // All further words belong to curl, in their order.
    app.fallthrough(false);
    app.prefix_command();
    app.final_callback([this, &app] { words = app.remaining(); });
  }
};

/// `det dev curl`: replaces this process by curl. curl reads the token from a memory file, because other
/// users can read the arguments of a process.
Status run_curl(Session& session, const CurlOptions& options) {
  if (options.words.empty())
    return fail(Code::kInvalidArgument, "no path; give one such as /api/v1/me; see `det dev curl --help`");
  TRY_ASSIGN(Client * client, session.client());
  // Without MFD_CLOEXEC: the descriptor must stay open across exec.
  const int file = ::memfd_create("det-curl", 0);
  if (file < 0) return fail(Code::kInternal, std::string("memfd_create: ") + std::strerror(errno));
  TRY(write_all(file, "header = \"Authorization: Bearer " + client->token() + "\"\n"));
  std::vector<std::string> command = {"curl", "-sS", "-K", "/proc/self/fd/" + std::to_string(file)};
  for (const std::string& word : options.words)
    // A word that starts with a slash is a path of the API.
    command.push_back(word.starts_with('/') ? client->address().url() + word : word);
  if (options.show) std::cerr << shown(command) << std::endl;
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::cout.flush();
  ::execvp("curl", arguments.data());
  return fail(Code::kFailedPrecondition,
              std::string("curl cannot be started: ") + std::strerror(errno) + "; install curl");
}

struct DevOptions {
  std::string target = ".";
  std::vector<std::string> overrides;
  bool fresh = false;
  void declare(CLI::App& app) {
    app.add_option("DIR", target,
                   "Directory of the trial, or a configuration file in it. Default: the current directory.");
    app.add_option("--config", overrides, "path.to.key=value over the configuration; may be repeated.")
        ->allow_extra_args(false);
    app.add_flag("--fresh", fresh, "Remove the saved state and train from the beginning.");
    app.footer(
        "Trains on this machine, without a cluster. A changed file compiles the trial again while the "
        "training\n"
        "goes on; the new library continues from the last batch. Code that does not compile changes "
        "nothing.\n"
        "Ctrl-C saves; the same command goes on from there.");
  }
};

Result<int> train_and_follow(Session&, const DevOptions& options) {
  TRY_ASSIGN(DevInputs inputs, find_dev_inputs(options.target));
  inputs.overrides = options.overrides;
  inputs.fresh = options.fresh;
  std::vector<std::string> command{"det", "dev", options.target};
  for (const std::string& assignment : options.overrides)
    command.insert(command.end(), {"--config", assignment});
  inputs.resume_command = printable(shown(command));
  return run_dev(inputs);
}

}  // namespace

Command dev_command() {
  return {{"dev"},
          "Train on this machine and go on with every edit; call the HTTP API by hand.",
          action(train_and_follow),
          {{{"auth-token"}, "Print the token of the current login.", action(print_auth_token)},
           {{"curl", "c"}, "Call an API path with curl and the current login.", action(run_curl)}}};
}

}  // namespace det::cli
