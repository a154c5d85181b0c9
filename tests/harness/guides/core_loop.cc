// A hand-written training loop over the Core API, without LibTorch or Trial. It fits a line through points.
#include <det/core.h>

#include <cmath>
#include <fstream>
#include <string>

struct Line {
  double slope = 0, offset = 0;
};

void save(const Line& line, const std::string& directory) {
  std::ofstream(directory + "/line.txt") << std::hexfloat << line.slope << ' ' << line.offset << '\n';
}

Line load(const std::string& directory) {
  std::ifstream file(directory + "/line.txt");
  std::string slope, offset;
  file >> slope >> offset;
  return {std::stod(slope), std::stod(offset)};
}

/// One step of gradient descent on the points (x, 3 x - 1); the mean squared error before it.
double step(Line& line, double learning_rate) {
  double error = 0, d_slope = 0, d_offset = 0;
  for (int i = 0; i < 16; ++i) {
    const double x = i / 8.0 - 1, miss = line.slope * x + line.offset - (3 * x - 1);
    error += miss * miss / 16;
    d_slope += 2 * miss * x / 16;
    d_offset += 2 * miss / 16;
  }
  line.slope -= learning_rate * d_slope;
  line.offset -= learning_rate * d_offset;
  return error;
}

int train(det::CoreContext& core, int steps) {
  const double learning_rate = core.info().hparams.value("learning_rate", 0.1);
  Line line;
  int first = 0;
  if (const std::string& uuid = core.info().latest_checkpoint; !uuid.empty()) {
    core.checkpoint().restore_path(uuid, [&](const std::string& directory) { line = load(directory); });
    first = core.checkpoint().get_metadata(uuid).at("steps_completed").get<int>();
  }

  const auto store = [&](int steps_completed) {
    core.checkpoint().store_path({{"steps_completed", steps_completed}},
                                 [&](const std::string& directory) { save(line, directory); });
  };
  for (int done = first + 1; done <= steps; ++done) {
    const double loss = step(line, learning_rate);
    if (done % 10 == 0) {
      core.train().report_training_metrics(done, {{"loss", loss}});
      core.train().report_progress(double(done) / steps, done);
    }
    if (core.preempt().should_preempt()) {
      store(done);
      return 0;
    }
  }
  core.train().report_validation_metrics(steps, {{"slope_error", std::abs(line.slope - 3)}});
  store(steps);
  return 0;
}

int main() {
  det::CoreContext core = det::init_core({.config_file = "core.yaml"});
  return train(core, 100);
}
