// A gRPC server with the real services. By default its database is unreachable: calls that need no row
// succeed, all others fail.
#pragma once

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "fake_store.h"
#include "master/api/auth/authorize.h"
#include "master/api/server.h"

namespace det::api {

struct Bench {
  Settings settings{.version = "test"};
  test::FakeStore store;
  core::Options options;
  loop::Loop loop{test::empty_core(options), store, test::test_now};
  loop::Hub hub;
  db::ConnectOptions where, where_metrics;
  db::Pool pool{where, 1};
  db::BulkWriter bulk{{.connect = where_metrics, .retry_for = std::chrono::milliseconds(200)}};
  db::MetricCache metrics{pool, bulk};
  std::atomic<Server*> ticked{nullptr};
  loop::Workers edge{1, 1 << 16,
                     [this] {
                       if (Server* live = ticked) live->tick();
                     },
                     std::chrono::milliseconds(20)};
  loop::WorkerPools pools;
  loop::Workers passwords{1};
  gc::Collector collector{pool, {.watch = false}, {}};
  webhooks::Sender webhooks{pool, {.egress = {.anywhere = false}}};
  Context context{.settings = settings,
                  .loop = loop,
                  .hub = hub,
                  .pool = pool,
                  .stream_pool = pool,
                  .bulk = bulk,
                  .metrics = metrics,
                  .pools = pools,
                  .passwords = passwords,
                  .edge = edge,
                  .collector = &collector,
                  .webhooks = &webhooks};
  Server server{context};

  /// Lets experiments keep checkpoints in a directory.
  void allow_storage(const std::string& directory) {
    context.storages->set(
        {.own = {}, .data_dir = {}, .directories = {directory}, .buckets = {}, .named = {}});
  }

  /// Options of a database that cannot be reached.
  static db::ConnectOptions nowhere() {
    return {.url = "host=/nowhere-at-all", .connect_timeout = std::chrono::seconds(1)};
  }

  Bench() : Bench(nowhere()) {}
  explicit Bench(const db::ConnectOptions& database, core::Options core_options = {})
      : Bench(database, database, std::move(core_options)) {}
  /// `metrics`: the database of the bulk writer.
  Bench(db::ConnectOptions database, db::ConnectOptions metrics_database, core::Options core_options)
      : options(std::move(core_options)),
        where(std::move(database)),
        where_metrics(std::move(metrics_database)) {
    store.durable_at_once = true;
    loop.start({.send = [this](core::Send send) { server.send(std::move(send)); },
                .changed = [this](const loop::Change& change) { server.changed(change); }},
               [](Error) {});
    ticked = &server;
  }
  ~Bench() {
    server.stop(std::chrono::seconds(0));
    pools.stop();
    passwords.stop();
    loop.stop();
    edge.stop();
  }

  std::shared_ptr<grpc::Channel> over_socket() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    server.take(UniqueFd(ends[0]));
    // A client whose window grows with the delays of a busy machine would take all of a stream that it does
    // not read.
    grpc::ChannelArguments fixed_window;
    fixed_window.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return grpc::CreateCustomInsecureChannelFromFd("master", ends[1], fixed_window);
  }
};

}  // namespace det::api
