// The ShiftViT example: its published sizes, the paper's equations, and short real runs on each kind of data.
#include <cmath>
#include <map>

#include "digits.h"
#include "run.h"

namespace det::testing {
namespace {

namespace fs = std::filesystem;

TEST_CASE("ShiftViT's sizes have the published parameter counts") {
  // Table 3 of the paper and the authors' model list, in millions of parameters.
  const std::map<std::string, double> published{{"T/light", 20}, {"T", 29},       {"S/light", 34},
                                                {"S", 50},       {"B/light", 60}, {"B", 89}};
  Workplace place;
  const Run run = run_in(place.path(), {DET_PROBE, "sizes"});
  REQUIRE(run.code == 0);
  for (const auto& [name, millions] : published) {
    INFO(name << " in\n" << run.out);
    const auto counts = numbers_after("\n" + run.out, "\n" + name + " ");
    REQUIRE(counts.size() == 1);
    CHECK(std::round(counts[0] / 1e6) == millions);
  }
}

TEST_CASE("ShiftViT's scores and gradients match the paper's equations") {
  Workplace place;
  const Run run = run_in(place.path(), {"/usr/bin/python3", kTests + "/reference.py", DET_PROBE, "shiftvit"});
  INFO(run.out << run.err);
  CHECK(run.code == 0);
}

TEST_CASE("ShiftViT learns on MNIST's files, on two processes as on one") {
  Workplace place;
  std::filesystem::create_directory(place.path() + "/data");
  std::filesystem::create_directory(place.path() + "/data/mnist");
  write_digits(place.path() + "/data/mnist", "train", 1280);
  write_digits(place.path() + "/data/mnist", "t10k", 200);
  const std::vector<std::pair<std::string, std::string>> shorter{{"epochs: 5  ", "epochs: 3  "},
                                                                 {"epochs: 5\n", "epochs: 3\n"}};
  for (const std::string name : {"const_mnist.yaml", "distributed_mnist.yaml"}) {
    place.add_edited("shiftvit", name, shorter);
    std::vector<std::string> argv{kPrograms + "/shiftvit_train", name};
    if (name.starts_with("dist")) argv.insert(argv.begin(), {DET_LAUNCH, "--nproc-per-node", "2", "--"});
    const Run run = run_in(place.path(), argv);
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    const auto accuracy = numbers_after(run.out, "accuracy ");
    REQUIRE(accuracy.size() == 3);
    CHECK(accuracy.back() > 0.8);
  }
}

TEST_CASE("ShiftViT trains on CIFAR-10's binary files") {
  Workplace place;
  write_cifar10(place.path() + "/data/cifar10", 640, 100);
  place.add_edited(
      "shiftvit", "const_cifar10.yaml",
      {{"epochs: 30  ", "epochs: 2  "}, {"epochs: 30\n", "epochs: 2\n"}, {"embed_dim: 48", "embed_dim: 24"}});
  const Run run = run_in(place.path(), {kPrograms + "/shiftvit_train", "const_cifar10.yaml"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(numbers_after(run.out, "accuracy ").size() == 2);
}

/// Scales distributed_imagenet.yaml down. Every feature of the recipe stays enabled.
std::vector<std::pair<std::string, std::string>> small_imagenet(const std::string& dir) {
  return {{"dir: /data/imagenet ", "dir: " + dir + " "},       {"image_size: 224", "image_size: 32"},
          {"global_batch_size: 1024", "global_batch_size: 8"}, {"epochs: 300", "epochs: 2"},
          {"warm_up_epochs: 20", "warm_up_epochs: 1"},         {"embed_dim: 96 ", "embed_dim: 24 "},
          {"depths: [6, 8, 18, 6]", "depths: [1, 1, 2, 1]"},   {"epochs: 300", "epochs: 2"}};
}

TEST_CASE("ShiftViT's ImageNet recipe gives the same bits from folders, lists and a bucket") {
  Workplace place;
  const std::string data = place.path() + "/imagenet";
  write_folders(data + "/train", 3, 8);
  write_folders(data + "/val", 3, 2);
  place.add_edited("shiftvit", "distributed_imagenet.yaml", small_imagenet(data));
  const auto train = [&] {
    const Run run = run_in(place.path(), {kPrograms + "/shiftvit_train", "distributed_imagenet.yaml"});
    INFO(run.out << run.err);
    REQUIRE(run.code == 0);
    return std::pair{numbers_after(run.out, "training +batch [0-9]+ +loss "),
                     numbers_after(run.out, "validation_loss ")};
  };
  const auto from_folders = train();
  REQUIRE(from_folders.second.size() == 2);
  for (const std::string part : {"train", "val"}) {
    const Run list = run_in(place.path(), {kPrograms + "/generate_blob_list", data, part});
    REQUIRE(list.code == 0);
    REQUIRE(write_file_atomic(data + "/" + part + ".txt", list.out).has_value());
  }
  CHECK(train() == from_folders);

  // The images move to a bucket; only the lists stay local.
  const std::string away = place.path() + "/away";
  fs::create_directories(away);
  for (const std::string part : {"train", "val"}) fs::rename(data + "/" + part, away + "/" + part);
  place.add_edited("shiftvit", "distributed_imagenet.yaml", [&] {
    auto edits = small_imagenet(data);
    edits[0].second = "dir: " + data + "\n  bucket: BUCKET_URL ";
    return edits;
  }());
  const Run run = run_in(place.path(), {"/usr/bin/python3", kTests + "/bucket.py", away,
                                        kPrograms + "/shiftvit_train", "distributed_imagenet.yaml"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(numbers_after(run.out, "validation_loss ") == from_folders.second);
  CHECK(fs::exists(data + "/train"));
}

TEST_CASE("generate_blob_list reads a bucket's listing page by page") {
  Workplace place;
  for (const char* path : {"train/a/1.jpg", "train/a/deep/2.jpg", "train/b & b/1.jpg", "train/c/1.jpg",
                           "train/readme.txt", "training/d/1.jpg"}) {
    fs::create_directories(fs::path(place.path() + "/images/" + path).parent_path());
    REQUIRE(write_file_atomic(place.path() + "/images/" + path, "x").has_value());
  }
  const Run run = run_in(place.path(), {"/usr/bin/python3", kTests + "/bucket.py", place.path() + "/images",
                                        kPrograms + "/generate_blob_list", "BUCKET_URL", "train"});
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(run.out == "train/a/1.jpg\t0\ntrain/a/deep/2.jpg\t0\ntrain/b & b/1.jpg\t1\ntrain/c/1.jpg\t2\n");
}

}  // namespace
}  // namespace det::testing
