#include "common/build/compiler.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "common/base/files.h"
#include "common/base/text.h"

namespace det::build {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kOutputBytes = 1 << 20;
constexpr std::int64_t kScannedBytes = 1 << 20;  // per source file, for names of classes
constexpr std::string_view kError = ": error: ", kFatal = ": fatal error: ";

/// Errors of Clang that other compilers report too.
constexpr std::array<std::string_view, 9> kCertain{"use of undeclared identifier",
                                                   "unknown type name",
                                                   "no member named",
                                                   "no type named",
                                                   "abstract class type",
                                                   "file not found",
                                                   "expected ';'",
                                                   "expected '}'",
                                                   "expected ')'"};

/// Passes the complete lines of a growing file on.
class Tail {
 public:
  Tail(const std::string& path, const LineSink& sink) : file_(path), sink_(sink) {}
  void poll() {
    if (!sink_) return;
    // At the end of the file the stream fails; the next poll reads what was appended.
    file_.clear();
    for (char c; file_.get(c);) {
      if (c == '\n') {
        finish();
      } else if (line_.size() < kOutputBytes) {
        line_ += c;
      }
    }
  }
  /// Passes the rest on, which has no newline.
  void finish() {
    if (sink_ && !line_.empty()) sink_(make_utf8(line_));
    line_.clear();
  }

 private:
  std::ifstream file_;
  const LineSink& sink_;
  std::string line_;
};

}  // namespace

Result<CompilerEnd> run_compiler(const CompilerRun& run, const std::stop_token& stop) {
  const std::string log = run.work_dir + "/output.txt";
  TRY(write_file_atomic(log, ""));
  ProcessOptions options{.argv = run.argv,
                         .env = environment_with({"LC_ALL=C", "TMPDIR=" + run.work_dir}),
                         .cwd = run.cwd,
                         .in = run.source.empty() ? Stream::null() : Stream::file(run.source),
                         .out = Stream::file(log),
                         .err = Stream::file(log),
                         .new_session = run.background,
                         .dies_with_us = true};
  TRY_ASSIGN(Child compiler, Child::spawn(options));
  if (run.background) lower_priority(compiler.pid());
  Tail tail(log, run.on_line);
  CompilerEnd end;
  for (;;) {
    const std::optional<ExitStatus> status = compiler.wait(100ms);
    tail.poll();
    if (status) {
      end.status = *status;
      break;
    }
    if (!stop.stop_requested() && mono_now() < run.deadline) continue;
    compiler.stop(1s);
    if (stop.stop_requested()) return fail(Code::kCancelled, "the build was stopped");
    return fail(Code::kDeadlineExceeded, run.argv[0] + " does not end within the time limit");
  }
  tail.finish();
  TRY_ASSIGN(end.output, read_file(log));
  end.output = make_utf8(end.output.substr(0, kOutputBytes));
  return end;
}

bool rejects_source(const CompilerEnd& end) {
  return end.status.signal == 0 && end.output.find(kError) != std::string::npos;
}

bool rejects_certainly(const std::string& output) {
  for (const std::string& line : split(output, '\n')) {
    // Absolute paths are headers of the system.
    if (line.empty() || line[0] == '/') continue;
    std::size_t at = line.find(kError);
    if (at == std::string::npos) at = line.find(kFatal);
    if (at == std::string::npos) continue;
    const std::string_view text = std::string_view(line).substr(at);
    for (const std::string_view certain : kCertain)
      if (text.find(certain) != std::string_view::npos) return true;
  }
  return false;
}

bool rejects_header(const std::string& output) {
  // The header is read before the source. Messages about it have no place in a source, and come first: text
  // of the trial, which a compiler shows as well, follows such a place.
  static const std::regex place(R"(^[^ ]*:\d+:\d+: )");
  for (const std::string& line : split(output, '\n')) {
    if (std::regex_search(line, place)) return false;
    if (!line.starts_with("error: ") && !line.starts_with("fatal error: ")) continue;
    for (const std::string_view words : {"precompiled header", "PCH file", "AST file"})
      if (line.find(words) != std::string::npos) return true;
  }
  return false;
}

std::string unknown_class(const std::string& source_dir, const std::string& module,
                          const std::string& trial_class) {
  static const std::regex declaration(R"((?:class|struct)\s+(\w+)(?:\s+final)?\s*(:[^;{]*)?\{)");
  static const std::set<std::string> extensions{".cpp", ".cc", ".cxx", ".h", ".hpp", ".hh"};
  const std::string name = trial_class.substr(trial_class.rfind(':') + 1);
  std::vector<std::string> trials;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator it(source_dir, error), end; !error && it != end;
       it.increment(error)) {
    if (!it->is_regular_file(error) || !extensions.contains(it->path().extension())) continue;
    const auto text = read_file(it->path(), kScannedBytes);
    if (!text) continue;
    // Declared by other means, such as a typedef or a macro: the compiler's message stands.
    if (std::regex_search(*text, std::regex("\\b" + name + "\\b"))) return "";
    for (std::sregex_iterator match(text->begin(), text->end(), declaration), none; match != none; ++match)
      if ((*match)[2].str().find("Trial") != std::string::npos) trials.push_back((*match)[1]);
  }
  std::sort(trials.begin(), trials.end());
  const std::string known =
      trials.empty() ? "it has no class derived from det::Trial" : "its trial classes: " + join(trials, ", ");
  return module + ".cpp: error: no class " + trial_class + "; " + known + did_you_mean(name, trials) + "\n";
}

}  // namespace det::build
