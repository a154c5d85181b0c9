// Stage 2: reports metrics and progress instead of printing them.
#include <det/core.h>

#include "cubic.h"

int main() {
  det::CoreContext core = det::init_core();
  const int batches = 500;

  Cubic cubic;
  for (int batch = 1; batch <= batches; ++batch) {
    const Slope slope = slope_of(cubic);
    descend(cubic, slope, /*learning_rate=*/0.3);
    if (batch % 10 == 0) {
      core.train().report_training_metrics(batch, {{"loss", slope.loss}});
      core.train().report_progress(double(batch) / batches);
    }
    if (batch % 100 == 0)
      core.train().report_validation_metrics(batch, {{"validation_loss", slope_of(cubic).loss}});
  }
}
