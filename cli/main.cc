// Entry point of the det command.
#include "cli/command.h"
#include "cli/output/terminal.h"

int main(int argc, char** argv) {
  det::cli::set_up_signals();
  return det::cli::run({argv + 1, argv + argc});
}
