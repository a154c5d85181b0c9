// Compares the command table with the commands of Determined AI's client (commands.tsv), the help texts and
// the reference page in cli/README.md.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "cli/command.h"
#include "common/base/text.h"
#include "fake_master.h"
#include "test_paths.h"

namespace det::cli::test {
namespace {

struct Row {
  std::string path, rank;
  std::vector<std::string> words, others, flags;
  bool offered = true;
};

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (const std::string& word : split(text, ' '))
    if (!word.empty()) words.push_back(word);
  return words;
}

std::vector<Row> rows() {
  std::vector<Row> all;
  const auto text = read_file(source_path("/tests/cli/commands.tsv"));
  REQUIRE(text);
  for (const std::string& line : split(*text, '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    std::vector<std::string> cells = split(line, '\t');
    cells.resize(4);
    Row row{cells[1], cells[0], words_of(cells[1]), words_of(cells[2]), words_of(cells[3])};
    row.offered = row.flags != std::vector<std::string>{"not"};
    all.push_back(std::move(row));
  }
  return all;
}

/// Result of a command that runs in this process. A dozen child processes would take a second.
struct Ran {
  int code = 0;
  std::string out, err;
};
Ran run_here(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  std::streambuf* const old_out = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const old_err = std::cerr.rdbuf(err.rdbuf());
  Ran ran;
  ran.code = run(arguments);
  std::cout.rdbuf(old_out);
  std::cerr.rdbuf(old_err);
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

/// Whether help lists exactly this flag: "--all" does not match "--allocation-id".
bool shows_flag(const std::string& help, const std::string& flag) {
  for (std::size_t at = help.find(flag); at != std::string::npos; at = help.find(flag, at + 1)) {
    const char next = at + flag.size() < help.size() ? help[at + flag.size()] : ' ';
    const char before = at == 0 ? ' ' : help[at - 1];
    if ((next == ' ' || next == ',' || next == '\n') && (before == ' ' || before == ',')) return true;
  }
  return false;
}

std::string flags_text(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) continue;
    text += " `" + option->get_name(false, true) + "`";
  }
  return text;
}

std::string arguments_text(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_name(true, false);
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  return text;
}

void add_reference(const Command& command, const std::string& above, std::string& text) {
  const std::string path = above + command.names.front();
  if (command.declare) {
    CLI::App app;
    app.set_help_flag();
    const Action kept = command.declare(app);
    std::vector<std::string> others(command.names.begin() + 1, command.names.end());
    text += "| `det " + path + arguments_text(app) + "`" +
            (others.empty() ? "" : " (" + join(others, ", ") + ")") + " | " + command.summary + " |" +
            flags_text(app) + " |\n";
  }
  for (const Command& verb : command.verbs) add_reference(verb, path + " ", text);
}

std::string reference() {
  std::string text = "| command | what it does | flags |\n|---|---|---|\n";
  for (const Command& noun : commands()) add_reference(noun, "", text);
  return text;
}

}  // namespace

TEST_CASE("every command of Determined's client exists or has a reason for its absence") {
  for (const Row& row : rows()) {
    INFO(row.path);
    std::vector<std::string> arguments = row.words;
    arguments.emplace_back("--help");
    const Ran help = run_here(arguments);
    CHECK(help.code == 0);
    CHECK(has(help.out, "det " + row.path));
    if (row.offered) {
      for (const std::string& flag : row.flags) {
        INFO(flag << "\n" << help.out);
        CHECK(shows_flag(help.out, flag));
      }
      CHECK(has(help.out, "Example:\n  "));
      CHECK(!example_of(row.path).empty());
      continue;
    }
    CHECK(has(help.out, "Not offered: "));
    arguments.back() = "anything";
    arguments.emplace_back("--else");
    const Ran refused = run_here(arguments);
    CHECK(refused.code == 1);
    CHECK(has(refused.err, "not offered: "));
    CHECK(split(refused.err, '\n').size() == 2);
  }
}

TEST_CASE("command aliases are equivalent to the full names") {
  for (const Row& row : rows()) {
    for (const std::string& other : row.others) {
      // An alias may stand for the noun or for the last word of the command; one of them must match.
      std::vector<std::string> as_noun = row.words, as_verb = row.words;
      as_noun.front() = other;
      as_verb.back() = other;
      as_noun.emplace_back("--help");
      as_verb.emplace_back("--help");
      INFO(row.path << " as " << other);
      CHECK((run_here(as_noun).code == 0 || run_here(as_verb).code == 0));
    }
  }
}

TEST_CASE("the example of every command parses as that command") {
  for (const Row& row : rows()) {
    if (!row.offered) continue;
    INFO(row.path << ": " << example_of(row.path));
    const std::string noun = row.words.front();
    CHECK((has(example_of(row.path), "det " + row.path) || has(example_of(row.path), "det completion")));
  }
}

TEST_CASE("the reference page is that of the code") {
  const std::string path = source_path("/cli/README.md");
  const std::string begin = "<!-- commands -->\n", end = "<!-- end of commands -->\n";
  auto page = read_file(path);
  REQUIRE(page);
  const std::size_t from = page->find(begin), to = page->find(end);
  REQUIRE(from != std::string::npos);
  REQUIRE(to != std::string::npos);
  const std::size_t first = from + begin.size();
  // Update the page with: DET_UPDATE_REFERENCE=1 cli_test "the reference page is that of the code"
  if (std::getenv("DET_UPDATE_REFERENCE") != nullptr) {
    page->replace(first, to - first, reference());
    REQUIRE(write_file_atomic(path, *page));
  } else {
    CHECK(page->substr(first, to - first) == reference());
  }
}

}  // namespace det::cli::test
