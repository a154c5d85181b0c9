#!/usr/bin/env python3
"""Time from an edit of a trial to its first training step on a warm cluster, for a trial of 50 lines (the
template classification) and one of about 110 lines (the template with EXTRA), and from an unchanged trial. Also CPU seconds of the compiler. tests/bench/edit_loop.py BUILD_DIR [ROUNDS]"""
import datetime
import json
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from cluster import Cluster, wait_until  # noqa: E402

SHORT = ("--config", "scheduling_unit=1", "--config", "searcher.max_length.batches=1")


# Added to the template: blocks of convolutions, a metric reducer and a callback with state.
EXTRA = """
struct BlockImpl : torch::nn::Module {
  BlockImpl(int64_t in, int64_t out, int64_t stride)
      : body(register_module(
            "body", torch::nn::Sequential(
                        torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).stride(stride).padding(1)),
                        torch::nn::BatchNorm2d(out), torch::nn::ReLU(),
                        torch::nn::Conv2d(torch::nn::Conv2dOptions(out, out, 3).padding(1)),
                        torch::nn::BatchNorm2d(out)))),
        shortcut(register_module("shortcut", torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 1).stride(stride)))),
        dropout(register_module("dropout", torch::nn::Dropout(0.1))) {}

  torch::Tensor forward(const torch::Tensor& x) {
    return dropout(torch::relu(body->forward(x) + shortcut(x)));
  }

  torch::nn::Sequential body;
  torch::nn::Conv2d shortcut;
  torch::nn::Dropout dropout;
};
TORCH_MODULE(Block);

class Counts : public det::MetricReducer {
 public:
  void update(int64_t correct, int64_t records) {
    correct_ += correct;
    records_ += records;
  }
  void reset() override { correct_ = records_ = 0; }
  det::Json per_slot_reduce() override { return {{"correct", correct_}, {"records", records_}}; }
  det::Json cross_slot_reduce(const std::vector<det::Json>& slots) override {
    int64_t correct = 0, records = 0;
    for (const det::Json& slot : slots) {
      correct += slot.at("correct").get<int64_t>();
      records += slot.at("records").get<int64_t>();
    }
    return records == 0 ? 0.0 : double(correct) / double(records);
  }

 private:
  int64_t correct_ = 0, records_ = 0;
};

class Best : public det::Callback {
 public:
  void on_validation_end(const det::Json& metrics) override {
    if (metrics.contains("accuracy")) best_ = std::max(best_, metrics.at("accuracy").get<double>());
  }
  det::Json state_dict() const override { return {{"best", best_}}; }
  void load_state_dict(const det::Json& state) override { best_ = state.value("best", 0.0); }

 private:
  double best_ = 0;
};
"""


def long_trial(text):
    """Returns the template's trial with EXTRA, all of it used."""
    text = text.replace("class MyTrial", EXTRA + "\nclass MyTrial", 1)
    text = text.replace(" private:\n  det::TrialContext& context_;", """
  det::Callbacks build_callbacks() override {
    context_.wrap_reducer(Counts(), "records_right");
    torch::Tensor image = Block(3, 8, 2)(torch::rand({1, 3, 8, 8}));
    (void)image;
    return {{"best", std::make_shared<Best>()}};
  }

 private:
  det::TrialContext& context_;""", 1)
    return text


def first_step(cluster, directory):
    """Seconds from starting the det command to the trial's report of step 1."""
    begin = time.time()
    out = cluster.det("experiment", "create", "const.yaml", ".", *SHORT, cwd=directory)
    id = int(out.split("Created experiment ")[1].split()[0])
    cluster.wait_state(id, "COMPLETED", timeout=240)
    workloads = cluster.trial(cluster.trial_id(id))["workloads"]
    first = next(w["training"] for w in workloads if w.get("training"))
    return datetime.datetime.fromisoformat(first["endTime"].replace("Z", "+00:00")).timestamp() - begin


def compiler_seconds(build, source_dir, work):
    """CPU seconds of the compiler with the precompiled header in `work`, including the link. A directory of its
    own, because the header would become part of the code archive."""
    recipe = json.loads((pathlib.Path(build) / "share" / "det" / "model_build.json").read_text())
    fast = recipe["precompiled"]
    if fast is None:
        raise SystemExit("edit_loop: this build knows no Clang; install clang and configure again")
    includes = [word for path in recipe["include_dirs"] if path != "/usr/include" for word in ("-isystem", path)]
    header = work / "header.pch"
    common = [fast["compiler"], *fast["cxx_flags"], "-I.", *includes]
    if not header.exists():
        subprocess.run([*common, *fast["header_flags"], "-x", "c++-header", fast["header"], "-o", header],
                       check=True, cwd=work)
    source = recipe["wrapper"].replace("{module}", "model_def").replace("{class}", "MyTrial")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*common, "-include-pch", header, "-x", "c++", "-", "-x", "none", "-o", work / "model.so",
                    *recipe["link_flags"]], input=source.encode(), check=True, cwd=source_dir)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def figure(name, value, unit, bound=None):
    within = bound is None or value <= bound
    print(f"{name} {value:.2f} {unit} {'-' if bound is None else bound} {'ok' if within else 'short'}", flush=True)


def main():
    build, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with Cluster(build) as cluster:
        cluster.start_agent("a1")
        short = cluster.dir / "short"
        cluster.det("init", short)
        long = cluster.dir / "long"
        shutil.copytree(short, long)
        source = (short / "model_def.cpp").read_text()
        (long / "model_def.cpp").write_text(long_trial(source))
        work = cluster.dir / "work"
        work.mkdir()
        first_step(cluster, short)  # Waits for the agent's precompiled header.
        for directory, bound in ((short, 5), (long, 8)):
            path = directory / "model_def.cpp"
            text = path.read_text()
            lines = text.count("\n")
            times = []
            for i in range(rounds):
                path.write_text(f"// Edit {i} of {time.time()}.\n" + text)
                times.append(first_step(cluster, directory))
            figure(f"edit_to_first_step_{lines}_lines", statistics.median(times), "s", bound)
            figure(f"compiler_{lines}_lines", compiler_seconds(build, directory, work), "cpu_s")
        same = [first_step(cluster, short) * 1000 for _ in range(4 * rounds)]
        figure("unchanged_to_first_step_p50", statistics.median(same), "ms", 60)


main()
