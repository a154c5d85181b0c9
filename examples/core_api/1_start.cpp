// Stage 1: a program that uses det only to start as a trial.
#include <det/core.h>

#include <iostream>

#include "cubic.h"

int main() {
  det::CoreContext core = det::init_core();
  std::cout << (core.info().on_cluster ? "trial " + std::to_string(core.info().trial_id) : "no cluster")
            << std::endl;

  Cubic cubic;
  for (int batch = 1; batch <= 500; ++batch) {
    const Slope slope = slope_of(cubic);
    descend(cubic, slope, /*learning_rate=*/0.3);
    if (batch % 100 == 0) std::cout << "batch " << batch << " loss " << slope.loss << std::endl;
  }
}
