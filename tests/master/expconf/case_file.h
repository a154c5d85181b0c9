// Owns the form of a .case file: "### [flags] title", the document, "---", the expectations.
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/text.h"

namespace det::expconf::test {

struct Case {
  std::string title;
  std::vector<std::string> flags;
  std::string document;  ///< lines that begin with "> " are command line assignments and not in it
  std::vector<std::string> overrides;  ///< of those lines
  std::vector<std::string> expected;
};

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// `&dash;` at the start of a line stands for the document marker, which would end the document's part.
inline std::vector<Case> read_cases(const std::string& path) {
  std::vector<Case> cases;
  bool expecting = false;
  for (const std::string& line : split(read_all(path), '\n')) {
    if (line.starts_with("### ")) {
      cases.push_back({});
      expecting = false;
      std::string title = line.substr(4);
      if (title.starts_with('[')) {
        cases.back().flags = split(title.substr(1, title.find(']') - 1), ' ');
        title = title.substr(title.find(']') + 2);
      }
      cases.back().title = title;
    } else if (line == "---") {
      expecting = true;
    } else if (expecting) {
      if (!line.empty()) cases.back().expected.push_back(line);
    } else if (line.starts_with("> ")) {
      cases.back().overrides.push_back(line.substr(2));
    } else {
      cases.back().document += (line == "&dash;" ? "---" : line) + "\n";
    }
  }
  return cases;
}

}  // namespace det::expconf::test
