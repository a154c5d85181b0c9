// Owns `det dev`: help for those who talk to the API by hand.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <iostream>

#include "cli/command.h"

namespace det::cli {
namespace {

Action declare_auth_token(CLI::App&) {
  return [](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    std::cout << client->token() << '\n';
    return 0;
  };
}

Status write_all(int file, const std::string& text) {
  if (::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size())) return {};
  return fail(Code::kInternal, std::string("cannot hand the token over: ") + std::strerror(errno));
}

/// Becomes curl. The token travels in a file that only the two see, never in the command line.
Action declare_curl(CLI::App& app) {
  auto words = std::make_shared<std::vector<std::string>>();
  app.add_option("PATH", *words,
                 "A path of the API such as /api/v1/me, and whatever else curl is to be told.")
      ->required();
  app.allow_extras();
  CLI::App* const declared = &app;
  return [=](Session& session) -> Result<int> {
    TRY_ASSIGN(Client * client, session.client());
    const int file = ::memfd_create("det-curl", 0);
    if (file < 0) return fail(Code::kInternal, std::string("memfd_create: ") + std::strerror(errno));
    TRY(write_all(file, "header = \"Authorization: Bearer " + client->token() + "\"\n"));
    std::vector<std::string> command = {"curl", "-sS", "-K", "/proc/self/fd/" + std::to_string(file)};
    for (const std::string& word : *words)
      command.push_back(word.starts_with('/') ? client->address().url() + word : word);
    for (const std::string& word : declared->remaining()) command.push_back(word);
    std::vector<char*> arguments;
    for (std::string& word : command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::cout.flush();
    ::execvp("curl", arguments.data());
    return fail(Code::kFailedPrecondition, std::string("curl does not start: ") + std::strerror(errno));
  };
}

}  // namespace

Command dev_command() {
  return {{"dev"},
          "Talk to the API by hand.",
          {},
          {{{"auth-token"}, "Print the token of whoever is logged in.", declare_auth_token},
           {{"curl", "c"}, "Call a path of the API with curl, logged in.", declare_curl}}};
}

}  // namespace det::cli
