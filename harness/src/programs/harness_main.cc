// The program det-harness: trains the trial in a shared object as configured.
#include "harness/src/programs/harness_program.h"

int main(int argc, char** argv) { return det::run_harness(argc, argv); }
