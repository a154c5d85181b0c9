// Data loading: the MNIST loader against a hand-written loop and the usual torch::data pipeline on one
// thread; the loader's share of a training step of the CNN; image folders with one and two workers.
#include <sys/resource.h>
#include <torch/torch.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "common/base/files.h"
#include "figure.h"
#include "harness/src/data/batch_stream.h"
#include "models.h"

namespace {

constexpr std::int64_t kRecords = 20000, kBatch = 64, kPixels = 28 * 28;
constexpr int kBatches = 300, kRounds = 9;

__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3"))) void convert(
    const std::uint8_t* from, float* to) {
  for (std::int64_t k = 0; k < kPixels; ++k) to[k] = from[k] * 0.0126F - 0.419F;
}

/// The fastest loop known to us: gathers bytes and converts them into a new batch.
double by_hand(const torch::Tensor& pixels, const torch::Tensor& labels, const torch::Tensor& order) {
  const auto* bytes = pixels.data_ptr<std::uint8_t>();
  const auto* label = labels.data_ptr<std::int64_t>();
  const auto* next = order.data_ptr<std::int64_t>();
  double sum = 0;
  const double seconds = bench::seconds_of([&] {
    for (int i = 0; i < kBatches; ++i) {
      torch::Tensor images = torch::empty({kBatch, 1, 28, 28}),
                    targets = torch::empty({kBatch}, torch::kLong);
      auto* out = images.data_ptr<float>();
      for (std::int64_t j = 0; j < kBatch; ++j) {
        const std::int64_t record = next[(i * kBatch + j) % kRecords];
        convert(bytes + record * kPixels, out + j * kPixels);
        targets.data_ptr<std::int64_t>()[j] = label[record];
      }
      sum += out[0];
    }
  });
  if (sum == 0.5) std::fprintf(stderr, "%f", sum);
  return seconds;
}

double with_loader(const det::DataLoader& loader) {
  det::BatchStream stream(loader, {.seed = 1, .training = true}, 0);
  return bench::seconds_of([&] {
    for (int i = 0; i < kBatches; ++i) (void)stream.next();
  });
}

/// As in LibTorch's documentation: floats at load, then Normalize and Stack.
class Digits : public torch::data::Dataset<Digits> {
 public:
  Digits(torch::Tensor images, torch::Tensor labels)
      : images_(std::move(images)), labels_(std::move(labels)) {}
  torch::data::Example<> get(std::size_t index) override { return {images_[index], labels_[index]}; }
  torch::optional<std::size_t> size() const override { return images_.size(0); }

 private:
  torch::Tensor images_, labels_;
};
double idiomatic(const torch::Tensor& pixels, const torch::Tensor& labels) {
  auto data = Digits(pixels.unsqueeze(1).to(torch::kFloat).div(255), labels)
                  .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                  .map(torch::data::transforms::Stack<>());
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(data), torch::data::DataLoaderOptions().batch_size(kBatch));
  int batches = 0;
  return bench::seconds_of([&] {
    for (auto& batch : *loader) {
      (void)batch;
      if (++batches == kBatches) break;
    }
  });
}

void mnist() {
  const torch::Tensor pixels = torch::randint(0, 256, {kRecords, 28, 28}, torch::kByte);
  const torch::Tensor labels = torch::randint(0, 10, {kRecords}, torch::kLong);
  const torch::Tensor order = torch::randperm(kRecords);
  const det::DataLoader loader(det::ImageDataset(pixels, labels, {0.1307}, {0.3081}),
                               {.batch_size = kBatch, .shuffle = true});
  std::vector<double> hand, usual, rates;
  for (int round = 0; round < kRounds; ++round) {
    const double loaded = with_loader(loader);
    hand.push_back(by_hand(pixels, labels, order) / loaded);
    usual.push_back(idiomatic(pixels, labels) / loaded);
    rates.push_back(kBatches * kBatch / loaded / 1e6);
  }
  bench::figure("loader_mnist", bench::median(rates), "Mrecords/s", ">=", 2);
  bench::figure("loader_mnist_over_hand", bench::median(hand), "ratio", ">=", 0.5);
  bench::figure("loader_mnist_over_torch_data", bench::median(usual), "ratio", ">=", 8);
  const double per_batch = kBatch / (bench::median(rates) * 1e6);

  bench::Model cnn = bench::make_model("cnn");
  torch::optim::SGD optimizer(cnn.net->parameters(), bench::sgd());
  const det::Batch batch = cnn.data->get_batch(std::vector<std::int64_t>(kBatch, 7));
  std::vector<double> steps;
  for (int i = 0; i < 12; ++i) {
    steps.push_back(bench::seconds_of([&] {
      torch::cross_entropy_loss(cnn.net->forward(batch.data()), batch.target()).backward();
      optimizer.step();
      optimizer.zero_grad();
    }));
  }
  bench::figure("loader_share_of_cnn_step", per_batch / bench::median(steps), "ratio", "<=", 0.01);
}

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Images a second with one worker and with one a core, alternating, and the number of busy cores.
void image_folder(const std::string& directory) {
  const auto cores = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  const det::ImageFolder images(directory);
  std::vector<double> busy, faster;
  for (int round = 0; round < 5; ++round) {
    double seconds_of_one = 0;
    for (const std::int64_t workers : {std::int64_t{1}, cores}) {
      const det::DataLoader loader(images, {.batch_size = kBatch, .shuffle = true, .num_workers = workers});
      det::BatchStream stream(loader, {.seed = 1, .training = true}, 0);
      (void)stream.next();
      const double before = processor_seconds();
      const double seconds = bench::seconds_of([&] {
        for (int i = 0; i < kBatches; ++i) (void)stream.next();
      });
      if (workers == 1) {
        seconds_of_one = seconds;
        continue;
      }
      busy.push_back((processor_seconds() - before) / seconds / static_cast<double>(cores));
      faster.push_back(seconds_of_one / seconds / static_cast<double>(cores));
      std::fprintf(stderr, "%.0f images/s with %d workers\n", kBatches * kBatch / seconds,
                   static_cast<int>(workers));
    }
  }
  bench::figure("loader_image_folder_busy_share_of_cores", bench::median(busy), "ratio", ">=", 0.9);
  bench::figure("loader_image_folder_speed_up_per_core", bench::median(faster), "ratio", ">=", 0.85);
}

}  // namespace

int main(int argc, char** argv) {
  torch::set_num_threads(1);
  mnist();
  if (argc > 1) {
    image_folder(argv[1]);
  } else {
    std::fprintf(stderr, "no folder of images is given: that part is left out\n");
  }
}
