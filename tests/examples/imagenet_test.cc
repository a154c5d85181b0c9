// Every step of the porting tutorial runs. The ported trial computes the same as the original script and as
// PyTorch.
#include "digits.h"
#include "run.h"

namespace det::testing {
namespace {

TEST_CASE("every step of the tutorial trains, validates and saves one batch") {
  Workplace place;
  write_cifar10(place.path() + "/data", 640, 100);
  place.add_edited("imagenet", "cifar10.yaml", {{"global_batch_size: 128", "global_batch_size: 16"}});
  for (const std::string step : {"1_model", "2_optimizer", "3_data", "4_batch", "train"}) {
    const Run run = run_in(place.path(), {kPrograms + "/imagenet_" + step, "cifar10.yaml", "--test"});
    INFO(step << "\n" << run.out << run.err);
    REQUIRE(run.code == 0);
    CHECK(numbers_after(run.out, "val_loss ").size() == 1);
    CHECK((numbers_after(run.out, "val_top5 ").size() == 1) == (step == "4_batch" || step == "train"));
    CHECK(run.out.find("checkpoint batch 1") != std::string::npos);
  }
}

TEST_CASE("the tutorial's trial reads image folders and supports ResNet-50") {
  Workplace place;
  write_folders(place.path() + "/data/train", 3, 4);
  write_folders(place.path() + "/data/val", 3, 2);
  place.add_edited("imagenet", "const.yaml",
                   {{"dir: /mnt/data ", "dir: data "},
                    {"global_batch_size: 256", "global_batch_size: 2"},
                    {"resnet18 ", "resnet50 "}});
  const Run run = run_in(place.path(), {kPrograms + "/imagenet_train", "const.yaml", "--test"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(numbers_after(run.out, "val_loss ").size() == 1);
}

/// The fields of the configuration in Determined AI's porting tutorial: a folder as hyperparameter, a Boolean
/// `pretrained`, no number of classes.
std::string tutorial_configuration(const std::string& pretrained) {
  return "description: tutorial\n"
         "hyperparameters: {global_batch_size: 2, dense1: 128, data: data, arch: resnet18, workers: 4,\n"
         "  start-epoch: 0, lr: 0.1, momentum: 0.9, weight_decay: 1e-4, pretrained: " +
         pretrained +
         "}\n"
         "records_per_epoch: 60000\n"
         "searcher: {name: single, metric: val_loss, smaller_is_better: false, max_length: {epochs: 10}}\n"
         "entrypoint: model_def:ImageNetTrial\n"
         "max_restarts: 0\n";
}

TEST_CASE("a configuration of Determined AI's porting tutorial trains") {
  Workplace place;
  write_folders(place.path() + "/data/train", 3, 4);
  write_folders(place.path() + "/data/val", 3, 2);
  place.add("random.yaml", tutorial_configuration("False"));
  const Run run = run_in(place.path(), {kPrograms + "/imagenet_train", "random.yaml", "--test"});
  INFO(run.out << run.err);
  CHECK(run.code == 0);
  place.add("weights.yaml", tutorial_configuration("True"));
  const Run absent = run_in(place.path(), {kPrograms + "/imagenet_train", "weights.yaml", "--test"});
  CHECK(absent.code != 0);
  CHECK(absent.err.find("data/resnet18.pth: ") != std::string::npos);
}

TEST_CASE("the ported trial has the same loss curve as PyTorch from equal initial weights") {
  Workplace place;
  const Run run = run_in(place.path(), {"/usr/bin/python3", kTests + "/curve.py",
                                        kPrograms + "/imagenet_train", "12", "0.01", "1e-3"});
  INFO(run.out << run.err);
  CHECK(run.code == 0);
}

TEST_CASE("the original script trains, and saves its best model") {
  Workplace place;
  write_cifar10(place.path() + "/data", 160, 100);
  const Run run = run_in(place.path(), {kPrograms + "/imagenet_original", "--epochs", "1", "--batch-size",
                                        "32", "--print-freq", "1", "--max-batches", "3"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(numbers_after(run.out, " loss ").size() == 3);
  CHECK(path_exists(place.path() + "/model_best.pt"));
}

}  // namespace
}  // namespace det::testing
