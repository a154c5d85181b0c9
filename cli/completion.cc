// Owns `det completion`: scripts for three shells, made from the table of commands.
#include <iostream>

#include "base/text.h"
#include "cli/command.h"

namespace det::cli {
namespace {

/// The flags a command has: from a parser that is declared and thrown away.
std::vector<std::string> flags_of(const Command& command) {
  std::vector<std::string> flags{"--help"};
  if (!command.declare) return flags;
  CLI::App app;
  const Action action = command.declare(app);
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_snames()) {
      if (name != "h") flags.push_back("-" + name);
    }
    for (const std::string& name : option->get_lnames()) {
      if (name != "help") flags.push_back("--" + name);
    }
  }
  return flags;
}

std::vector<std::string> names_of(const std::vector<Command>& table) {
  std::vector<std::string> names;
  for (const Command& command : table) names.insert(names.end(), command.names.begin(), command.names.end());
  names.emplace_back("help");
  return names;
}

const std::vector<std::string> kGlobal{"-m", "--master", "-u", "--user", "--help", "--version"};

/// Words before the one at the cursor, without flags and the values of -m and -u, say what may follow.
std::string bash_script() {
  std::string cases;
  for (const Command& noun : commands()) {
    for (const Command& verb : noun.verbs) {
      std::vector<std::string> patterns;
      for (const std::string& a : noun.names) {
        for (const std::string& b : verb.names)
          patterns.push_back("\"" + a + " " + b + "\" | \"" + a + " " + b + " \"*");
      }
      cases += "    " + join(patterns, " | ") + ") words=\"" + join(flags_of(verb), " ") + "\" ;;\n";
    }
    std::vector<std::string> nouns;
    for (const std::string& a : noun.names) nouns.push_back("\"" + a + "\"");
    const std::vector<std::string> next = noun.verbs.empty() ? flags_of(noun) : names_of(noun.verbs);
    // `completion` takes the name of a shell.
    cases += "    " + join(nouns, " | ") + ") words=\"" +
             (noun.names.front() == "completion" ? "bash zsh fish" : join(next, " ")) + "\" ;;\n";
  }
  return "_det() {\n"
         "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" said=\"\" words=\"\" skip=0 i\n"
         "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
         "    if [ $skip = 1 ]; then skip=0; continue; fi\n"
         "    case \"${COMP_WORDS[i]}\" in\n"
         "    -m | --master | -u | --user) skip=1 ;;\n"
         "    -*) ;;\n"
         "    *) said=\"${said:+$said }${COMP_WORDS[i]}\" ;;\n"
         "    esac\n"
         "  done\n"
         "  case \"$said\" in\n"
         "    \"\") words=\"" +
         join(names_of(commands()), " ") + " " + join(kGlobal, " ") + "\" ;;\n" + cases +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
         "}\n"
         "complete -o default -F _det det\n";
}

std::string fish_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' || c == '\\' ? "\\" + std::string(1, c) : std::string(1, c);
  return quoted + "'";
}

std::string fish_script() {
  std::string text;
  const auto offer = [&](const std::string& when, const Command& command) {
    text += "complete -c det -f -n " + fish_quoted(when) + " -a " + fish_quoted(join(command.names, " ")) +
            " -d " + fish_quoted(command.summary) + "\n";
  };
  for (const Command& noun : commands()) {
    offer("__fish_use_subcommand", noun);
    const std::string in_noun = "__fish_seen_subcommand_from " + join(noun.names, " ");
    if (noun.names.front() == "completion")
      text += "complete -c det -f -n '" + in_noun + "' -a 'bash zsh fish'\n";
    for (const Command& verb : noun.verbs) {
      offer(in_noun + "; and not __fish_seen_subcommand_from " + join(names_of(noun.verbs), " "), verb);
      const std::string in_verb = in_noun + "; and __fish_seen_subcommand_from " + join(verb.names, " ");
      for (const std::string& flag : flags_of(verb)) {
        const bool is_long = flag.starts_with("--");
        text += "complete -c det -n '" + in_verb + "' " +
                (is_long ? "-l " + flag.substr(2) : "-s " + flag.substr(1)) + "\n";
      }
    }
  }
  return text;
}

Action declare_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish.")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  app.footer(
      "For bash and zsh: eval \"$(det completion bash)\" in the shell's start file; for fish:\n"
      "det completion fish > ~/.config/fish/completions/det.fish");
  return [=](Session&) -> Result<int> {
    if (*shell == "zsh") std::cout << "autoload -Uz bashcompinit && bashcompinit\n";
    std::cout << (*shell == "fish" ? fish_script() : bash_script());
    return 0;
  };
}

}  // namespace

Command completion_command() {
  return {{"completion"}, "Print a script that completes commands and flags.", declare_completion};
}

}  // namespace det::cli
