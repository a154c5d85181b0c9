// A program with its own loop: gradient descent on a parabola. It reports metrics, saves checkpoints, and
// resumes from the latest one.
#include <det/core.h>

#include <fstream>
#include <stdexcept>

int main() {
  det::CoreContext core = det::init_core();
  const int batches = 500;

  double x = 3;
  int done = 0;
  if (const std::string& uuid = core.info().latest_checkpoint; !uuid.empty()) {
    core.checkpoint().restore_path(uuid, [&](const std::string& directory) {
      if (!(std::ifstream(directory + "/x.txt") >> x)) throw std::runtime_error("x.txt is damaged");
    });
    done = core.checkpoint().get_metadata(uuid).at("steps_completed").get<int>();
  }
  for (int batch = done + 1; batch <= batches; ++batch) {
    const double loss = (x - 1) * (x - 1);
    x -= 0.01 * 2 * (x - 1);
    if (batch % 10 == 0) {
      core.train().report_training_metrics(batch, {{"loss", loss}});
      core.train().report_progress(double(batch) / batches);
    }
    const bool leave = core.preempt().should_preempt();
    if (batch % 100 == 0) core.train().report_validation_metrics(batch, {{"validation_loss", loss}});
    if (batch % 100 == 0 || leave)
      core.checkpoint().store_path({{"steps_completed", batch}}, [&](const std::string& directory) {
        std::ofstream(directory + "/x.txt") << x;
      });
    if (leave) return 0;
  }
}
