#include "cli/command.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>

#include "cli/output/print.h"
#include "cli/output/terminal.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "common/build/recipe.h"
#include "common/client/trust.h"

namespace det::cli {
namespace {

/// Returns the full command, such as "det experiment create".
std::string path_of(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : path_of(*parent) + " " + app.get_name();
}

/// CLI11's own help() would delegate to the selected subcommand, which is `help` itself.
std::string help_of(const CLI::App& app) {
  return app.get_formatter()->make_help(&app, path_of(app), CLI::AppFormatMode::Normal);
}

/// CLI11 parsers for the tree of commands, with the action of each leaf. Only commands that the arguments can
/// mean get their flags and verbs: those of all commands take longer to build than most commands to run.
struct Parser {
  const std::set<std::string> words;  ///< all arguments
  CLI::App app{"Train deep-learning models on a Determinant cluster.", "det"};
  std::map<const CLI::App*, Action> actions;
  Session session;

  bool may_be_meant(const Command& command) const {
    // A noun without a verb runs its `list`.
    return command.names.front() == "list" ||
           std::any_of(command.names.begin(), command.names.end(),
                       [&](const std::string& name) { return words.contains(name); });
  }

  void add(CLI::App& parent, const Command& command, const std::string& above) {
    const std::string path = above + command.names.front();
    CLI::App& node = *parent.add_subcommand(command.names.front(), command.summary);
    for (std::size_t i = 1; i < command.names.size(); ++i) node.alias(command.names[i]);
    if (!may_be_meant(command)) return;
    // Global flags such as -m are accepted after the verb as well.
    node.fallthrough();
    if (command.declare) actions[&node] = command.declare(node);
    if (const std::string example = example_of(path); !example.empty())
      node.footer((node.get_footer().empty() ? "" : node.get_footer() + "\n\n") + "Example:\n  " + example);
    // At most one verb: a noun alone is legal and runs `list`.
    if (command.verbs.empty()) return;
    node.require_subcommand(0, 1);
    for (const Command& verb : command.verbs) add(node, verb, path + " ");
    add_help(node);
  }

  void add_help(CLI::App& node) {
    actions[node.add_subcommand("help", "Show help.")] = [&node](Session&) -> Result<int> {
      std::cout << help_of(node);
      return 0;
    };
  }

  explicit Parser(const std::vector<std::string>& arguments) : words(arguments.begin(), arguments.end()) {
    app.require_subcommand(0, 1);
    app.set_version_flag("-v,--version", [] {
      const auto prefix = std::filesystem::path(program_path()).parent_path().parent_path();
      return "det " DET_VERSION + build::library_note(prefix.string());
    });
    app.add_option("-m,--master", session.master_flag,
                   "Address of the master (default: $DET_MASTER, else localhost:8080).");
    app.add_option_function<std::string>(
        // known_trust() reads the file's name from the environment.
        "--cert-file", [](const std::string& file) { ::setenv("DET_MASTER_CERT_FILE", file.c_str(), 1); },
        "Trusted certificates for TLS (PEM; default: $DET_MASTER_CERT_FILE); noverify disables the check.");
    // Prompts only on a terminal: a script must not block on a question.
    if (is_terminal(0) && is_terminal(2)) {
      session.confirm = [](const std::string& question) -> Result<bool> {
        TRY_ASSIGN(const std::string answer, ask(question));
        return answer == "y" || answer == "yes" || answer == "Y";
      };
    }
    app.add_option("-u,--user", session.user_flag, "User of a stored login (default: the last login).");
    for (const Command& command : commands()) add(app, command, "");
    add_help(app);
  }
};

/// Returns the innermost command that was named.
const CLI::App* chosen(const CLI::App& app) {
  const std::vector<CLI::App*> next = app.get_subcommands();
  return next.empty() ? &app : chosen(*next.front());
}

int usage(const CLI::App& app, const std::string& why) {
  print_error({Code::kInvalidArgument, why + "; see `" + path_of(app) + " --help`", {}});
  return 2;
}

/// Describes a word that is not a command, flag or argument, with the nearest valid one.
std::string unknown_word(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* each : app.get_subcommands(nullptr)) {
    names.push_back(each->get_name());
    for (const std::string& alias : each->get_aliases()) names.push_back(alias);
  }
  return "unknown " +
         std::string(word.starts_with("-") ? "flag "
                     : names.empty()       ? "argument "
                                           : "command ") +
         word + did_you_mean(word, names);
}

int report(Parser& parser, const CLI::ParseError& error) {
  const CLI::App& app = *chosen(parser.app);
  if (error.get_exit_code() == 0) return parser.app.exit(error);  // --help, --version
  const std::vector<std::string> rest = parser.app.remaining(true);
  const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !rest.empty();
  if (unknown) return usage(app, unknown_word(app, rest.front()));
  return usage(app, error.what());
}

/// Runs the command that the arguments name. Returns its exit code.
Result<int> run_arguments(const std::vector<std::string>& arguments) {
  Parser parser(arguments);
  try {
    // CLI11 takes the arguments in reverse order.
    parser.app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return report(parser, error);
  }
  const CLI::App* app = chosen(parser.app);
  auto action = parser.actions.find(app);
  if (action == parser.actions.end()) {
    // A noun without a verb runs its `list`.
    const auto children =
        app->get_subcommands([](const CLI::App* child) { return child->get_name() == "list"; });
    if (children.empty()) {
      std::cerr << help_of(*app);
      return 2;
    }
    action = parser.actions.find(children.front());
  }
  return action->second(parser.session);
}

}  // namespace

int exit_code(const Error& error) {
  switch (error.code) {
    case Code::kInvalidArgument:
      return 2;
    case Code::kUnavailable:
    case Code::kDeadlineExceeded:
    case Code::kUnauthenticated:
      return 3;
    default:
      return 1;
  }
}

void print_error(const Error& error) {
  if (!error.problems.empty()) {
    std::cerr << problem_lines(error.problems);
    return;
  }
  const bool color = wants_color(2);
  std::cerr << (color ? "\033[31m" : "") << "det: " << printable(error.message) << (color ? "\033[0m" : "")
            << '\n';
}

int run(const std::vector<std::string>& arguments) {
  const Result<int> result = run_arguments(arguments);
  // Results precede the error message also when both streams share a pipe.
  errno = 0;
  std::cout.flush();
  const std::string reason = errno == 0 ? "a write failed" : std::strerror(errno);
  if (!result) print_error(result.error());
  const int code = result ? *result : exit_code(result.error());
  if (std::cout) return code;
  print_error({Code::kInternal, "cannot write the output: " + reason, {}});
  return code == 0 ? 1 : code;
}

}  // namespace det::cli
