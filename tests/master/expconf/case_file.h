// Reader of .case files: "### [flags] title", the document, "---", the expectations.
#pragma once

#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/text.h"

namespace det::expconf::test {

/// CPU time of this process, which other load on the machine does not distort.
inline Duration cpu_now() {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(double(std::clock()) / CLOCKS_PER_SEC));
}

/// Time limit for reading any document. Instrumented builds get a larger one.
#ifdef DET_SANITIZED
constexpr Duration kMaxParseTime = std::chrono::seconds(2);
#else
constexpr Duration kMaxParseTime = std::chrono::milliseconds(50);
#endif

struct Case {
  std::string title;
  std::vector<std::string> flags;
  /// Without its lines that begin with "> ", which are command-line assignments.
  std::string document;
  std::vector<std::string> overrides;  ///< Those assignments.
  std::map<std::string, std::string>
      /// Text after the lines "&template", "&policies", "&more_policies", "&tasks", "&pool_tasks",
      /// "&storage".
      layers;
  std::vector<std::string> expected;

  bool has(const std::string& flag) const {
    for (const std::string& each : flags) {
      if (each == flag) return true;
    }
    return false;
  }
};

inline std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Expands `@{3*ab}` to ababab (each # becomes the number of the copy), and `@{xFF}` to the byte.
inline std::string expand(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find("@{", at);
    out += text.substr(at, begin - at);
    if (begin == std::string::npos) break;
    const std::size_t end = text.find('}', begin);
    const std::string inside = text.substr(begin + 2, end - begin - 2);
    at = end + 1;
    if (inside.starts_with('x')) {
      out += static_cast<char>(std::stoi(inside.substr(1), nullptr, 16));
      continue;
    }
    const std::size_t star = inside.find('*');
    for (int i = 0; i < std::stoi(inside.substr(0, star)); ++i) {
      for (const char c : inside.substr(star + 1)) out += c == '#' ? std::to_string(i) : std::string(1, c);
    }
  }
  return out;
}

/// `&dash;` on a line of its own stands for the document marker "---", which would end the document.
inline std::vector<Case> read_cases(const std::string& path) {
  std::vector<Case> cases;
  bool expecting = false;
  std::string* part = nullptr;
  for (const std::string& line : split(expand(read_all(path)), '\n')) {
    if (line.starts_with("### ")) {
      cases.push_back({});
      expecting = false;
      part = &cases.back().document;
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
    } else if (line == "&template" || line == "&policies" || line == "&more_policies" || line == "&tasks" ||
               line == "&pool_tasks" || line == "&storage") {
      part = &cases.back().layers[line.substr(1)];
    } else if (line.starts_with("> ")) {
      cases.back().overrides.push_back(line.substr(2));
    } else {
      *part += (line == "&dash;" ? "---" : line) + "\n";
    }
  }
  return cases;
}

}  // namespace det::expconf::test
