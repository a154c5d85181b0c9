// The language model learns a text, on one process and on two in bf16 with gradient aggregation, and
// generates text from a checkpoint.
#include <algorithm>

#include "run.h"

namespace det::testing {
namespace {

void write_text(Workplace& place) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "one two three " + std::string(i % 2 ? "four\n" : "five\n");
  place.add("text.txt", text);
}

const std::vector<std::pair<std::string, std::string>> kSmall{
    {"/usr/share/common-licenses/GPL-3 ", "text.txt "},
    {"layers: 4", "layers: 2"},
    {"width: 128", "width: 32"},
    {"context: 64", "context: 32"},
    {"dropout: 0.1", "dropout: 0"}};

TEST_CASE("the language model learns a text and continues it from a checkpoint") {
  Workplace place;
  write_text(place);
  auto edits = kSmall;
  edits.insert(edits.end(), {{"batches: 600 ", "batches: 150 "},
                             {"batches: 600\n", "batches: 150\n"},
                             {"batches: 200", "batches: 75"}});
  place.add_edited("gpt", "const.yaml", edits);
  const Run run = run_in(place.path(), {kPrograms + "/gpt_train", "const.yaml"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  const auto losses = numbers_after(run.out, "validation_loss ");
  REQUIRE(losses.size() == 2);
  CHECK(losses.back() < 0.5);  // 5.5 before the first step

  const std::size_t at = run.out.rfind("checkpoint batch 150 ");
  REQUIRE(at != std::string::npos);
  const std::string line = run.out.substr(at, run.out.find('\n', at) - at);
  const Run text =
      run_in(place.path(), {kPrograms + "/gpt_generate",
                            "checkpoints/" + line.substr(line.find_last_of(' ') + 1), "one two ", "60"});
  INFO(text.out << text.err);
  REQUIRE(text.code == 0);
  CHECK(text.out.starts_with("one two three f"));
}

TEST_CASE("the language model trains as two processes in bf16, stepping every fourth batch") {
  Workplace place;
  write_text(place);
  auto edits = kSmall;
  edits.insert(edits.end(), {{"batches: 2400 ", "batches: 80 "},
                             {"batches: 2400\n", "batches: 80\n"},
                             {"batches: 400", "batches: 40"}});
  place.add_edited("gpt", "distributed.yaml", edits);
  const Run run = run_in(place.path(), {DET_LAUNCH, "--nproc-per-node", "2", "--", kPrograms + "/gpt_train",
                                        "distributed.yaml"});
  INFO(run.out << run.err);
  REQUIRE(run.code == 0);
  const auto losses = numbers_after(run.out, "validation_loss ");
  REQUIRE(losses.size() == 2);
  CHECK(losses[1] < losses[0]);
  CHECK(losses[0] < 5);
}

}  // namespace
}  // namespace det::testing
