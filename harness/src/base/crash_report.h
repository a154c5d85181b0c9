// Crash reports: what the program did and which of its lines were active when it crashed or threw an
// exception. Independent of LibTorch.
//
// install_crash_report() takes the signals SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT, where the program has
// no handler of its own. The report goes to stderr, ends with a line "error: …", and the signal then ends the
// process. Places are read from debug information by addr2line, another process; without it or without debug
// information the report has no places. SIGHUP ends the process again where UCX had taken it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace det {

/// Current activity of the program, for error messages and crash reports.
struct Activity {
  enum class Kind : std::uint8_t {
    kOther,        ///< depends on the machine
    kReading,      ///< reads the records of the batch, which are the same after a resume
    kComputation,  ///< computes from the state of training alone
  };
  const char* name = "the trial's constructor";
  std::int64_t batch = -1;  ///< -1: none
  Kind kind = Kind::kOther;
};
/// "train_batch (batch 7)".
std::string to_string(const Activity& activity);

/// Sets the records that the program works on, for reports about its computations; `count` 0: none. The first
/// eight are kept. One thread may set them; a report on another thread may mix two batches.
void set_crash_records(std::int64_t epoch, const std::int64_t* records, std::size_t count);
/// Sets the records that this thread reads, for crashes on it, until the object ends.
class ReadingRecords {
 public:
  /// The records must outlive this object.
  ReadingRecords(std::int64_t epoch, const std::vector<std::int64_t>& records);
  ~ReadingRecords();
  ReadingRecords(const ReadingRecords&) = delete;
};
/// The line of a report about the records, such as "  records 4, 17, 2 of epoch 0\n"; "" without any, or when
/// `activity` is no computation on a batch.
std::string crash_records_text(const Activity& activity);

/// Starts to record where exceptions are thrown, and installs the signal handlers. The stack of the calling
/// thread may then overflow and still be reported. Idempotent.
void install_crash_report();
/// Sets the activity that reports name; null: none. It must outlive the next call.
void set_crash_activity(const Activity* activity);
/// The same activity; null: none. Async-signal-safe.
const Activity* crash_activity_now();

/// The program's own lines on the stack from which an exception was thrown. `object` is the address of the
/// exception object, dynamic_cast<const void*>(&error).
struct ThrowSite {
  std::string place;  ///< "model_def.cpp:41", the innermost line; "" when unknown
  std::string stack;  ///< lines "  at FUNCTION (FILE:LINE)\n", innermost first
};
/// Finds the site among those of the last exceptions; empty when it is not among them. Starts a process and
/// blocks for at most 10 s.
ThrowSite throw_site(const void* object);

}  // namespace det
