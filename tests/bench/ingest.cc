// Ingest rate of a real master: bench_ingest MASTER PASSWORD_FILE DATABASE [SECONDS]. A user submits, a stub
// agent receives trials, their processes report metrics in unary calls and in streams, and the agent ships
// logs. An item counts once it is durable. Alternates with COPY of the same rows into the same PostgreSQL.
#include <libpq-fe.h>

#include <cstdlib>
#include <functional>
#include <semaphore>

#include "common/client/calls.h"
#include "det/v1/harness.methods.h"
#include "det/v1/trial.methods.h"
#include "load.h"

namespace {

using namespace det;
using bench::check;
using bench::Clock;

constexpr int kTrials = 16, kConnections = 4, kInFlight = 256, kRounds = 3, kLogBatch = 1000;
const char* const kReport =
    R"({"loss":0.6931471805599453,"accuracy":0.9125,"grad_norm":1.73205,"lr":0.001,"samples_per_second":15321.5})";

struct World {
  std::string address, database, agent_token;
  double seconds = 5;
  std::unique_ptr<bench::User> user;
  std::unique_ptr<bench::Agent> agent;
  std::vector<v1::StartAllocation> trials;
  std::atomic<std::int64_t> step{0};
};

/// Time from the submitting call to the message at the agent.
void submit_to_allocation(World& world) {
  std::vector<double> ms;
  for (int i = 0; i < 1000; ++i) {
    const auto begin = Clock::now();
    world.user->submit("{name: single, metric: loss, max_length: {batches: 1}}");
    const auto started = world.agent->next();
    ms.push_back(std::chrono::duration<double>(started.when - begin).count() * 1e3);
    world.agent->say(started.allocation.allocation_id(), v1::AllocationUpdate::STATE_TERMINATED);
  }
  bench::figure("ingest_submit_to_allocation_p50", bench::percentile(ms, 0.5), "ms", "<=", 5);
  bench::figure("ingest_submit_to_allocation_p99", bench::percentile(ms, 0.99), "ms", "<=", 5);
}

void start_trials(World& world) {
  world.user->submit(
      "{name: random, metric: loss, max_trials: 16, max_concurrent_trials: 16, max_length: {batches: 1}}");
  for (int i = 0; i < kTrials; ++i) {
    world.trials.push_back(world.agent->next().allocation);
    world.agent->say(world.trials.back().allocation_id(), v1::AllocationUpdate::STATE_RUNNING);
  }
}

/// Unary calls with one report each, kInFlight at a time.
class Unary {
 public:
  explicit Unary(World& world) : world_(world) {
    for (int i = 0; i < kConnections; ++i) channels_.push_back(bench::connect(world.address, i + 1));
  }

  double run(std::vector<double>& ms) {
    took_.assign(1 << 22, 0);
    done_ = 0;
    running_ = kInFlight;
    end_ = Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(world_.seconds));
    const double seconds = bench::seconds_of([&] {
      for (int i = 0; i < kInFlight; ++i) send(new Call, static_cast<std::size_t>(i));
      finished_.acquire();
    });
    ms.assign(took_.begin(), took_.begin() + done_);
    return done_ / seconds;
  }

 private:
  struct Call {
    std::unique_ptr<grpc::ClientContext> context;
    v1::ReportTrialTrainingMetricsRequest request;
    v1::ReportTrialMetricsResponse response;
    Clock::time_point begin;
  };
  void send(Call* call, std::size_t number) {
    const v1::StartAllocation& trial = world_.trials[number % world_.trials.size()];
    call->context = std::make_unique<grpc::ClientContext>();
    call->context->AddMetadata("x-allocation-token", "Bearer " + trial.token());
    v1::TrialMetrics& metrics = *call->request.mutable_training_metrics();
    if (metrics.trial_id() == 0) {
      metrics.set_trial_id(trial.trial_id());
      metrics.set_trial_run_id(trial.run());
      auto& fields = *metrics.mutable_metrics()->mutable_avg_metrics()->mutable_fields();
      for (const char* name : {"loss", "accuracy", "grad_norm", "lr", "samples_per_second"})
        fields[name].set_number_value(0.6931471805599453);
    }
    metrics.set_steps_completed(static_cast<int>(++world_.step));
    call->begin = Clock::now();
    wire::start(channels_[number % channels_.size()], v1::TrialService::ReportTrialTrainingMetrics,
                *call->context, call->request, call->response,
                [this, call, number](const grpc::Status& status) {
                  check(status, "a report");
                  took_[static_cast<std::size_t>(done_++)] =
                      std::chrono::duration<double>(Clock::now() - call->begin).count() * 1e3;
                  if (Clock::now() < end_) return send(call, number);
                  delete call;
                  if (--running_ == 0) finished_.release();
                });
  }

  World& world_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::vector<double> took_;
  std::atomic<int> done_{0}, running_{0};
  Clock::time_point end_;
  std::binary_semaphore finished_{0};
};

/// One stream a trial, like det-harness. Returns acknowledged reports a second.
double stream(World& world, int streams) {
  std::atomic<std::int64_t> acknowledged{0};
  const double seconds = bench::seconds_of([&] {
    std::vector<std::thread> threads;
    for (int i = 0; i < streams; ++i) {
      threads.emplace_back([&world, &acknowledged, i] {
        const v1::StartAllocation& trial = world.trials[static_cast<std::size_t>(i)];
        const auto channel = bench::connect(world.address, 100 + i);
        grpc::ClientContext context;
        context.AddMetadata("x-allocation-token", "Bearer " + trial.token());
        auto session = wire::open(channel, v1::HarnessService::Session, context);
        v1::HarnessMessage message;
        message.mutable_attach()->set_trial_id(trial.trial_id());
        message.mutable_attach()->set_run(trial.run());
        message.mutable_attach()->set_allocation_id(trial.allocation_id());
        session->Write(message);
        v1::MasterMessage answer;
        if (!session->Read(&answer)) check(session->Finish(), "a session");
        std::thread reader([&] {
          v1::MasterMessage heard;
          std::int64_t before = 0;
          while (session->Read(&heard)) {
            if (!heard.has_acknowledged()) continue;
            acknowledged +=
                heard.acknowledged().sequence() - std::exchange(before, heard.acknowledged().sequence());
          }
        });
        const auto begin = Clock::now();
        std::int64_t sequence = 0;
        while (bench::seconds_since(begin) < world.seconds) {
          v1::Reports& reports = *message.mutable_reports();
          reports.clear_reports();
          for (int n = 0; n < 100; ++n) {
            v1::Report& report = *reports.add_reports();
            report.set_sequence(++sequence);
            report.mutable_metrics()->set_group("training");
            report.mutable_metrics()->set_steps_completed(++world.step);
            report.mutable_metrics()->set_metrics(kReport);
          }
          session->Write(message);
        }
        session->WritesDone();
        reader.join();
        (void)session->Finish();
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  return static_cast<double>(acknowledged) / seconds;
}

std::string log_line(std::int64_t number) {
  std::string line = "epoch 3, batch " + std::to_string(number) + ": training loss 0.6931471805599453";
  line.resize(100, '.');
  return line;
}

/// Log lines a second shipped by an agent, for four allocations at a time.
double ship_logs(World& world, std::vector<std::int64_t>& next) {
  std::atomic<std::int64_t> lines{0};
  const double seconds = bench::seconds_of([&] {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const auto channel = bench::connect(world.address, 200 + static_cast<int>(i));
        v1::ShipLogsRequest request;
        request.set_allocation_id(world.trials[i].allocation_id());
        request.set_agent_id("bench");
        for (int n = 0; n < kLogBatch; ++n) {
          v1::LogLine& line = *request.add_lines();
          line.mutable_time()->set_seconds(1'700'000'000 + n);
          line.set_level("INFO");
          line.set_stdtype("stdout");
          line.set_source("task");
          line.set_text(log_line(n));
        }
        const auto begin = Clock::now();
        while (bench::seconds_since(begin) < world.seconds) {
          request.set_first_line(next[i]);
          grpc::ClientContext context;
          bench::sign_agent(context, world.agent_token);
          v1::ShipLogsResponse response;
          check(wire::call(channel, v1::AgentService::ShipLogs, context, request, response), "logs");
          lines += response.next_line() - std::exchange(next[i], response.next_line());
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  return static_cast<double>(lines) / seconds;
}

void run_sql(PGconn* connection, const char* sql) {
  PGresult* result = PQexec(connection, sql);
  if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_COPY_IN) {
    std::fprintf(stderr, "%s: %s\n", sql, PQerrorMessage(connection));
    std::_Exit(1);
  }
  PQclear(result);
}

/// Rows a second by COPY, 1,000 a transaction. `row` returns one row as COPY text.
double copy(World& world, const char* table, const char* columns,
            const std::function<std::string(std::int64_t)>& row) {
  PGconn* connection = PQconnectdb(world.database.c_str());
  const std::string mine = std::string("bench_") + table;
  run_sql(connection, ("DROP TABLE IF EXISTS " + mine).c_str());
  run_sql(connection, ("CREATE TABLE " + mine + " (LIKE " + table + " INCLUDING ALL)").c_str());
  const std::string sql = "COPY " + mine + " (" + columns + ") FROM STDIN";
  std::int64_t rows = 0;
  const auto begin = Clock::now();
  while (bench::seconds_since(begin) < world.seconds) {
    run_sql(connection, sql.c_str());
    std::string text;
    for (int i = 0; i < 1000; ++i) text += row(++rows);
    PQputCopyData(connection, text.data(), static_cast<int>(text.size()));
    PQputCopyEnd(connection, nullptr);
    while (PGresult* result = PQgetResult(connection)) {
      if (PQresultStatus(result) != PGRES_COMMAND_OK)
        check({grpc::INTERNAL, PQerrorMessage(connection)}, "copy");
      PQclear(result);
    }
  }
  const double seconds = bench::seconds_since(begin);
  run_sql(connection, ("DROP TABLE " + mine).c_str());
  PQfinish(connection);
  return static_cast<double>(rows) / seconds;
}

double best(const std::vector<double>& values) { return *std::max_element(values.begin(), values.end()); }

/// Uses the best of the rounds, because the machine may have other load.
void measure(World& world) {
  Unary unary(world);
  std::vector<std::int64_t> next_line(4, 1);
  std::vector<double> calls, p99, streamed, metric_copy, logs, log_copy, log_share;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> ms;
    calls.push_back(unary.run(ms));
    p99.push_back(-bench::percentile(ms, 0.99));
    streamed.push_back(stream(world, 8));
    metric_copy.push_back(
        copy(world, "metrics", "trial_id, run, grp, steps_completed, reported, metrics", [](std::int64_t n) {
          return std::to_string(n % 8) + "\t1\ttraining\t" + std::to_string(n) + "\t2026-01-01 00:00:00Z\t" +
                 kReport + "\n";
        }));
    logs.push_back(ship_logs(world, next_line));
    log_copy.push_back(
        copy(world, "task_logs", "task_id, allocation_id, agent_id, rank, time, level, stdtype, source, log",
             [&](std::int64_t n) {
               const v1::StartAllocation& trial = world.trials[static_cast<std::size_t>(n % 4)];
               return trial.task_id() + "\t" + trial.allocation_id() +
                      "\tbench\t0\t2026-01-01 00:00:00Z\tINFO\tstdout\ttask\t" + log_line(n) + "\n";
             }));
    log_share.push_back(logs.back() / log_copy.back());
  }
  bench::figure("ingest_unary", best(calls), "reports/s", ">=", 15'000);
  bench::figure("ingest_unary_p99", -best(p99), "ms", "<=", 30);
  bench::figure("ingest_streamed", best(streamed), "reports/s", ">=", 75'000);
  bench::figure("ingest_metrics_bare_copy", best(metric_copy), "rows/s", ">=", 0);
  bench::figure("ingest_logs", best(logs), "lines/s", ">=", 0);
  bench::figure("ingest_logs_bare_copy", best(log_copy), "lines/s", ">=", 0);
  bench::figure("ingest_logs_to_copy", bench::median(log_share), "x", ">=", 0.8);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  World world;
  world.address = argv[1];
  world.database = argv[3];
  if (argc > 4) world.seconds = std::atof(argv[4]);
  world.user = std::make_unique<bench::User>(world.address, argv[2]);
  world.agent_token = bench::join_as(world.address, argv[2], "bench");
  world.agent = std::make_unique<bench::Agent>(world.address, "bench", kTrials, world.agent_token);
  submit_to_allocation(world);
  start_trials(world);
  measure(world);
}
