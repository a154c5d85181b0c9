// Runs a compiler and passes its messages on while it runs; interprets the messages.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/process.h"
#include "common/base/result.h"

namespace det::build {

/// Receives a line of a compiler's messages. Called on the thread of the build.
using LineSink = std::function<void(const std::string& line)>;

/// Inputs of run_compiler().
struct CompilerRun {
  std::vector<std::string> argv;
  std::string cwd;
  std::string source;    ///< file that the compiler reads as standard input; "": none
  std::string work_dir;  ///< existing directory of temporary files; gets output.txt
  MonoTime deadline;
  LineSink on_line;         ///< may be null
  bool background = false;  ///< at the lowest priority
};

/// A compiler that has ended.
struct CompilerEnd {
  ExitStatus status;
  std::string output;  ///< messages, valid UTF-8, at most 1 MiB
};

/// Runs a compiler to its end. Messages reach `on_line` at most 0.1 s late. Errors: kDeadlineExceeded,
/// kCancelled (`stop` requested), those of Child::spawn. Blocks.
Result<CompilerEnd> run_compiler(const CompilerRun& run, const std::stop_token& stop);

/// Whether the compiler rejected the source, as opposed to failing for another reason.
bool rejects_source(const CompilerEnd& end);
/// Whether a message names a defect of the trial's own files that no C++20 compiler accepts, such as an
/// undeclared name. Other errors may come from gaps of the compiler.
bool rejects_certainly(const std::string& output);
/// Whether Clang complains about the precompiled header: it is damaged, or a header has changed. Text of the
/// source in the messages does not count.
bool rejects_header(const std::string& output);

/// Returns a message that names the trial classes of the model directory, if `trial_class` is declared in
/// none of its sources; else "".
std::string unknown_class(const std::string& source_dir, const std::string& module,
                          const std::string& trial_class);

}  // namespace det::build
