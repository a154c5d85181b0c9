// The program det-harness as a function, for processes that are forked with its libraries loaded.
#pragma once

namespace det {

/// Trains the trial in a shared object as configured; the arguments are those of det-harness. Returns the
/// exit code, or exits. To be called once, on the main thread.
int run_harness(int argc, char** argv);

/// Loads the libraries that run_harness() would load. Starts no thread and opens no file.
void preload_harness();

}  // namespace det
