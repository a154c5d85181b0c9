// Readers and reporters on a real master: bench_reads MASTER PASSWORD_FILE EXPERIMENTS SECONDS. 200 reads a
// second (a page of experiments, an experiment, a trial, alternating) start when due, whether earlier ones
// are answered or not, beside 1,000 reports a second of 100 running trials. After its figures it prints
// "running" and waits for the end of its input, so that the trials keep running.
#include <cstdlib>

#include "common/base/event.h"
#include "common/base/random.h"
#include "common/client/calls.h"
#include "det/v1/harness.methods.h"
#include "det/v1/trial.methods.h"
#include "load.h"

namespace {

using namespace det;
using bench::check;
using bench::Clock;

constexpr int kTrials = 100, kReadsPerSecond = 200, kReportsPerSecond = 1000, kReporters = 10;

void wait_until(Clock::time_point due) { (void)Event().wait_for(due - Clock::now()); }

std::vector<v1::StartAllocation> start_trials(const bench::User& user, bench::Agent& agent) {
  user.submit(
      "{name: random, metric: loss, max_trials: 100, max_concurrent_trials: 100, max_length: {batches: 1}}");
  std::vector<v1::StartAllocation> trials;
  for (int i = 0; i < kTrials; ++i) {
    trials.push_back(agent.next().allocation);
    agent.say(trials.back().allocation_id(), v1::AllocationUpdate::STATE_RUNNING);
  }
  return trials;
}

/// One reporting trial at its share of the rate until `end`. Returns the acknowledged reports.
std::int64_t report(const std::string& address, const v1::StartAllocation& trial, Clock::time_point end) {
  const auto channel = bench::connect(address, 100 + trial.trial_id());
  grpc::ClientContext context;
  context.AddMetadata("x-allocation-token", "Bearer " + trial.token());
  auto session = wire::open(channel, v1::HarnessService::Session, context);
  v1::HarnessMessage message;
  message.mutable_attach()->set_trial_id(trial.trial_id());
  message.mutable_attach()->set_run(trial.run());
  message.mutable_attach()->set_allocation_id(trial.allocation_id());
  session->Write(message);
  v1::MasterMessage heard;
  if (!session->Read(&heard)) check(session->Finish(), "a session");
  std::int64_t acknowledged = 0;
  std::thread reader([&] {
    while (session->Read(&heard))
      acknowledged = std::max<std::int64_t>(acknowledged, heard.acknowledged().sequence());
  });
  std::int64_t sequence = 0;
  for (auto due = Clock::now(); due < end;
       due += std::chrono::microseconds(1'000'000 * kReporters / kReportsPerSecond)) {
    wait_until(due);
    v1::Report& report = *message.mutable_report();
    report.set_sequence(++sequence);
    report.mutable_metrics()->set_group("training");
    report.mutable_metrics()->set_steps_completed(sequence);
    report.mutable_metrics()->set_metrics(R"({"loss":0.6931471805599453,"accuracy":0.9125})");
    session->Write(message);
  }
  session->WritesDone();
  reader.join();
  (void)session->Finish();
  return acknowledged;
}

class Readers {
 public:
  Readers(const std::string& address, const bench::User& user, int experiments)
      : user_(user),
        channel_(bench::connect(address, 1)),
        other_(bench::connect(address, 2)),
        count_(experiments) {}

  /// Milliseconds from each read's due time to its response, by kind.
  void run(Clock::time_point end) {
    int number = 0;
    for (auto due = Clock::now(); due < end; due += std::chrono::microseconds(1'000'000 / kReadsPerSecond)) {
      wait_until(due);
      send(number++, due);
    }
    for (int i = 0; i < number; ++i) {
      const auto [kind, milliseconds] = *took_.pop();
      ms[kind].push_back(milliseconds);
    }
  }
  std::vector<double> ms[3];

 private:
  template <typename Request, typename Response>
  struct Call {
    grpc::ClientContext context;
    Request request;
    Response response;
  };
  /// `start(call, done)` starts the call.
  template <typename Request, typename Response, typename Start>
  void read(int kind, Clock::time_point due, Request request, const Start& start) {
    auto call = std::make_shared<Call<Request, Response>>();
    user_.sign(call->context);
    call->request = std::move(request);
    start(*call, [this, call, kind, due](const grpc::Status& status) {
      check(status, "a read");
      took_.push({kind, std::chrono::duration<double>(Clock::now() - due).count() * 1e3});
    });
  }
  void send(int number, Clock::time_point due) {
    const auto id = static_cast<int>(1 + random_.below(static_cast<std::uint64_t>(count_)));
    if (number % 3 == 0) {
      v1::GetExperimentsRequest request;
      request.set_order_by(v1::ORDER_BY_DESC);
      request.set_limit(40);
      request.set_offset(number % 2 == 0 ? 0 : id / 2);
      read<v1::GetExperimentsRequest, v1::GetExperimentsResponse>(
          0, due, request, [this](auto& call, auto done) {
            wire::start(channel_, v1::ExperimentService::GetExperiments, call.context, call.request,
                        call.response, done);
          });
    } else if (number % 3 == 1) {
      v1::GetExperimentRequest request;
      request.set_experiment_id(id);
      read<v1::GetExperimentRequest, v1::GetExperimentResponse>(
          1, due, request, [this](auto& call, auto done) {
            wire::start(channel_, v1::ExperimentService::GetExperiment, call.context, call.request,
                        call.response, done);
          });
    } else {
      v1::GetTrialRequest request;
      request.set_trial_id(id);
      read<v1::GetTrialRequest, v1::GetTrialResponse>(2, due, request, [this](auto& call, auto done) {
        wire::start(other_, v1::TrialService::GetTrial, call.context, call.request, call.response, done);
      });
    }
  }

  const bench::User& user_;
  std::shared_ptr<grpc::Channel> channel_, other_;
  const int count_;
  Random random_{11, 0};
  Queue<std::pair<int, double>> took_{1 << 20};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const std::string address = argv[1];
  bench::User user(address, argv[2]);
  bench::Agent agent(address, "bench", kTrials, bench::join_as(address, argv[2], "bench"));
  const auto trials = start_trials(user, agent);
  Readers readers(address, user, std::atoi(argv[3]));
  const auto end = Clock::now() + std::chrono::seconds(std::atoi(argv[4]));
  std::atomic<std::int64_t> reports{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kReporters; ++i)
    threads.emplace_back([&, i] { reports += report(address, trials[static_cast<std::size_t>(i)], end); });
  readers.run(end);
  for (std::thread& thread : threads) thread.join();
  constexpr const char* kNames[] = {"list", "experiment", "trial"};
  for (int i = 0; i < 3; ++i) {
    bench::figure(std::string("reads_") + kNames[i] + "_p50", bench::percentile(readers.ms[i], 0.5), "ms",
                  "<=", 50);
    bench::figure(std::string("reads_") + kNames[i] + "_p99", bench::percentile(readers.ms[i], 0.99), "ms",
                  "<=", 50);
  }
  bench::figure("reads_beside_reports", static_cast<double>(reports) / std::atoi(argv[4]), "reports/s",
                ">=", 950);
  std::puts("running");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
}
