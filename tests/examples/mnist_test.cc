// Short real runs of the MNIST examples on synthetic digits.
#include "digits.h"
#include "run.h"

namespace det::testing {
namespace {

TEST_CASE("the MNIST example learns on one and two processes, with equal first losses") {
  Workplace place;
  write_digits(place.path(), "train", 1280);
  write_digits(place.path(), "t10k", 200);
  place.add_edited("mnist", "const.yaml",
                   {{"# data:\n#   dir: /path/to/mnist ", "data:\n  dir: " + place.path() + " "}});
  const Run one = run_in(place.path(), {kPrograms + "/mnist_train"});
  INFO(one.out << one.err);
  REQUIRE(one.code == 0);
  const auto accuracy = numbers_after(one.out, "accuracy ");
  REQUIRE(accuracy.size() == 1);
  CHECK(accuracy[0] > 0.9);

  const Run two =
      run_in(place.path(), {DET_LAUNCH, "--nproc-per-node", "2", "--", kPrograms + "/mnist_train"});
  INFO(two.out << two.err);
  REQUIRE(two.code == 0);
  const auto together = numbers_after(two.out, "accuracy ");
  REQUIRE(together.size() == 1);
  CHECK(together[0] > 0.9);
}

TEST_CASE("digits that cannot be written are named with the reason, and no part of them is left") {
  Workplace place;
  place.add("const.yaml", read_file(kExamples + "/mnist/const.yaml").value());
  // Without a network, and with files of at most 1 MB in place of a full disk.
  const Run run = run_in(place.path(), {"/bin/sh", "-c",
                                        "trap '' XFSZ; ulimit -f 2000; export XDG_CACHE_HOME=$PWD/cache "
                                        "https_proxy=http://127.0.0.1:9; exec \"$0\"",
                                        kPrograms + "/mnist_train"});
  INFO(run.out << run.err);
  CHECK(run.code != 0);
  const std::string folder = place.path() + "/cache/determinant/mnist/drawn";
  CHECK(run.err.find("cannot write the drawn digits to " + folder + ": File too large") != std::string::npos);
  CHECK(std::filesystem::is_empty(folder));
}

TEST_CASE("the managed MNIST example trains for max_steps times a hundred batches") {
  Workplace place;
  write_digits(place.path(), "train", 640);
  write_digits(place.path(), "t10k", 200);
  place.add_edited("mnist_managed", "const.yaml",
                   {{"# data:\n#   dir: /path/to/mnist ", "data:\n  dir: " + place.path() + " "},
                    {"max_steps: 20 ", "max_steps: 1 "},
                    {"learning_rate: 0.001", "learning_rate: 0.02"}});
  const Run run = run_in(place.path(), {kPrograms + "/mnist_managed_train"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  CHECK(run.out.find("validation batch 100 ") != std::string::npos);
  const auto error = numbers_after(run.out, "validation_error ");
  REQUIRE(error.size() == 1);
  CHECK(error[0] < 0.1);
}

}  // namespace
}  // namespace det::testing
