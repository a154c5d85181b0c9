// Source places of code addresses, read from debug information by addr2line in another process.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "harness/src/base/crash_text.h"

namespace det {

inline constexpr int kMaxFrames = 48;

/// Lines and the innermost place of a stack, see ThrowSite.
struct Places {
  CrashText<4096> stack;
  CrashText<256> place;
};

/// Finds addr2line. Call it once before symbolize().
void prepare_symbolize();
/// Adds the program's own lines among the return addresses `frames`, innermost first. Libraries of the
/// system, LibTorch and this one are not listed. Async-signal-safe as far as dl_iterate_phdr is. Blocks for
/// at most 10 s.
void symbolize(void* const* frames, int count, Places& places);
/// Finds the program's own lines of return addresses, such as "forward (model_def.cpp:41)"; lines of inlined
/// calls are separated by semicolons. Runs addr2line once for each file, for at most 10 s. Thread-safe, and
/// not for signal handlers.
std::unordered_map<const void*, std::string> source_lines(std::vector<const void*> addresses);

}  // namespace det
