#include "common/archive/ignore.h"

#include <ctime>

#include "need.h"

using namespace det;

TEST_CASE("patterns follow gitignore's rules", "[ignore]") {
  struct Row {
    const char* rules;
    const char* path;
    bool directory;
    bool ignored;
  };
  const std::vector<Row> rows{{"*.o", "a.o", false, true},
                              {"*.o", "x/y/a.o", false, true},
                              {"*.o", "a.obj", false, false},
                              {"build", "build", true, true},
                              {"build", "x/build", false, true},
                              {"build/", "build", true, true},
                              {"build/", "build", false, false},
                              {"/build", "build", true, true},
                              {"/build", "x/build", true, false},
                              {"a/b", "a/b", false, true},
                              {"a/b", "x/a/b", false, false},
                              {"a/*", "a/b", false, true},
                              {"a/*", "a/b/c", false, false},
                              {"?.txt", "a.txt", false, true},
                              {"?.txt", "ab.txt", false, false},
                              {"*.py[co]", "m.pyc", false, true},
                              {"*.py[co]", "m.py", false, false},
                              {"[a-c]x", "bx", false, true},
                              {"[!a-c]x", "bx", false, false},
                              {"[!a-c]x", "dx", false, true},
                              {"[^a]x", "bx", false, true},
                              {"[]]x", "]x", false, true},
                              {"[x", "[x", false, true},
                              {"**/foo", "foo", false, true},
                              {"**/foo", "a/b/foo", false, true},
                              {"a/**", "a/b/c", false, true},
                              {"a/**", "a", true, false},
                              {"a/**/b", "a/b", false, true},
                              {"a/**/b", "a/x/y/b", false, true},
                              {"a/**/b", "ab", false, false},
                              {"*", "anything", false, true},
                              {"*.log\n!keep.log", "keep.log", false, false},
                              {"*.log\n!keep.log", "other.log", false, true},
                              {"!keep.log\n*.log", "keep.log", false, true},
                              {"# comment", "# comment", false, false},
                              {"\\#x", "#x", false, true},
                              {"\\!x", "!x", false, true},
                              {"a\\*b", "a*b", false, true},
                              {"a\\*b", "axb", false, false},
                              {"trail   ", "trail", false, true},
                              {"a\\ ", "a ", false, true},
                              {"x\r\ny\r\n", "x", false, true},
                              {"\n\n", "x", false, false},
                              {"/", "x", true, false},
                              {"a*b*c", "aXbYc", false, true},
                              {"a*c", "a/c", false, false}};
  for (const Row& row : rows) {
    INFO(row.rules << " on " << row.path);
    CHECK(IgnoreRules(row.rules).ignored(row.path, row.directory) == row.ignored);
  }
}

TEST_CASE("the built-in rules exclude caches, editor files, git and terraform", "[ignore]") {
  const IgnoreRules rules = builtin_ignore_rules();
  for (const char* directory : {"__pycache__", "pkg/__pycache__", ".git", ".vscode", ".idea", ".mypy_cache",
                                "shared_fs", ".terraform"}) {
    INFO(directory);
    CHECK(rules.ignored(directory, true));
  }
  for (const char* file : {"m.pyc", "pkg/m.pyo", "m$py.class", "terraform.tfstate", "terraform.tfvars.json",
                           ".terraform.lock.hcl"}) {
    INFO(file);
    CHECK(rules.ignored(file, false));
  }
  for (const char* file :
       {"model_def.cpp", "const.yaml", "x/shared_fs", ".gitignore", "terraform_notes.md"}) {
    INFO(file);
    CHECK_FALSE(rules.ignored(file, false));
  }
}

TEST_CASE("matching a hostile pattern is fast", "[ignore]") {
  std::string pattern, path(2000, 'a');
  for (int i = 0; i < 50; ++i) pattern += "*a";
  const std::clock_t start = std::clock();
  CHECK_FALSE(IgnoreRules(pattern + "b").ignored(path, false));
  // In CPU time: the sanitizers' runs get what other suites leave over.
  CHECK(std::clock() - start < 2 * CLOCKS_PER_SEC);
}
