// `det completion`: prints a script per shell, and computes the completions that the scripts request.
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "cli/command.h"
#include "cli/output/complete.h"

namespace det::cli {
namespace {

// Each script runs the program that was typed, so that completions match its version. Names come from the
// cluster: the scripts never let the shell expand them.
constexpr const char* kBash = R"(_det() {
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _det det
)";
constexpr const char* kZsh = R"(#compdef det
_det() {
  local -a found
  found=("${(@f)$("${words[1]}" completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then _describe det found; else _files; fi
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _det det
)";
constexpr const char* kFish = R"(function __det_complete
  set -l words (commandline -opc) (commandline -ct)
  $words[1] completion fish -- $words[2..-1] 2>/dev/null
end
complete -c det -f -k -a '(__det_complete)'
complete -c det -n 'test (count (__det_complete)) -eq 0' -F
)";

/// Time limit of a completion. A slow master is treated as unreachable.
constexpr suseconds_t kMaxMicroseconds = 800'000;

/// Puts a backslash before each of `characters`.
std::string escaped(const std::string& text, std::string_view characters) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

/// Formats a candidate for the shell: fish separates text and description by a tab, zsh by a colon.
std::string line_for(const std::string& shell, const Candidate& each) {
  if (shell == "fish") return each.text + (each.about.empty() ? "" : "\t" + each.about);
  if (shell == "zsh") return escaped(each.text, ":\\") + (each.about.empty() ? "" : ":" + each.about);
  return escaped(each.text, " \\'\"$`&|;<>()*?[]{}~!#");
}

/// Prints the completions of the last word, a line each; nothing when the time limit is exceeded.
void answer(const std::string& shell, const std::vector<std::string>& words) {
  // Lines are printed in one piece at the end, so an expired timer leaves no partial list.
  std::signal(SIGALRM, [](int) { ::_exit(0); });
  const itimerval limit{{0, 0}, {0, kMaxMicroseconds}};
  ::setitimer(ITIMER_REAL, &limit, nullptr);
  std::string lines;
  for (const Candidate& each : complete(words)) lines += line_for(shell, each) + "\n";
  std::cout << lines;
}

struct CompletionOptions {
  std::string shell;
  std::vector<std::string> words;  ///< of a command line; empty: print the script
  void declare(CLI::App& app) {
    app.add_option("SHELL", shell, "Shell: bash, zsh or fish.")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    app.add_option("WORDS", words, "After --: words of a command line; prints completions of the last word.");
    app.footer(
        "For bash: eval \"$(det completion bash)\" in ~/.bashrc; for zsh: eval \"$(det completion zsh)\" in "
        "~/.zshrc;\n"
        "for fish: det completion fish > ~/.config/fish/completions/det.fish");
  }
};

Status print_completion(Session&, const CompletionOptions& options) {
  if (!options.words.empty()) {
    answer(options.shell, options.words);
  } else {
    std::cout << (options.shell == "bash" ? kBash : options.shell == "zsh" ? kZsh : kFish);
  }
  return {};
}

}  // namespace

Command completion_command() {
  return {{"completion"},
          "Print a script that completes commands, flags, names and ids.",
          action(print_completion)};
}

}  // namespace det::cli
