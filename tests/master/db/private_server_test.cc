// The private PostgreSQL server: created, stopped, killed, taken over, refused.
#include "master/db/pg/private_server.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "common/base/files.h"
#include "master/db/pg/pg.h"
#include "tests/master/db/database.h"

namespace det::test {
namespace {

db::PrivateServer start(const std::string& directory) {
  auto server = db::PrivateServer::start({.directory = directory});
  if (!server) FAIL(server.error().message);
  return std::move(*server);
}

void write_number(const db::PrivateServer& server, int number) {
  auto connection = db::Connection::open({.url = server.url()});
  if (!connection) FAIL(connection.error().message);
  REQUIRE(connection->script("CREATE TABLE IF NOT EXISTS t (x int)"));
  REQUIRE(connection->query("INSERT INTO t VALUES ($1::bigint)", number));
}

std::int64_t count(const db::PrivateServer& server) {
  auto connection = db::Connection::open({.url = server.url()});
  if (!connection) FAIL(connection.error().message);
  auto rows = connection->query("SELECT count(*) FROM t");
  REQUIRE(rows);
  return (*rows)[0].next<std::int64_t>();
}

bool running(int pid) { return kill(pid, 0) == 0; }

}  // namespace

TEST_CASE("a private server survives stops, takeovers and kills") {
  auto temporary = TemporaryDirectory::create("det-pg-life");
  REQUIRE(temporary);
  const std::string directory = temporary->path() + "/postgres";
  int pid = 0;
  {
    db::PrivateServer server = start(directory);
    pid = server.pid();
    write_number(server, 1);
    // The server has its own session, so that Ctrl-C in the terminal does not reach it.
    CHECK(getsid(pid) == pid);
    struct stat data {};
    REQUIRE(stat((directory + "/data").c_str(), &data) == 0);
    CHECK(data.st_uid != 0);
    CHECK((data.st_mode & 0777) == 0700);

    const auto second = db::PrivateServer::start({.directory = directory});
    REQUIRE_FALSE(second);
    CHECK(second.error().code == Code::kFailedPrecondition);
    CHECK_THAT(second.error().message, Catch::Contains("in use by another det-master"));
    CHECK(running(pid));
  }
  CHECK_FALSE(running(pid));

  {
    db::PrivateServer server = start(directory);
    pid = server.pid();
    write_number(server, 2);
    server.abandon();
  }
  CHECK(running(pid));
  {
    db::PrivateServer server = start(directory);
    CHECK(server.pid() == pid);
    CHECK(count(server) == 2);
    REQUIRE(kill(pid, SIGKILL) == 0);
    // Unlike a new master, this process is still the parent, so it has to reap the child.
    REQUIRE(waitpid(pid, nullptr, 0) == pid);
  }
  {
    db::PrivateServer server = start(directory);
    CHECK(server.pid() != pid);
    CHECK(count(server) == 2);
    CHECK(server.stop());
    CHECK(server.stop());
  }
}

TEST_CASE("a private server killed under its master is restarted at the same address") {
  auto temporary = TemporaryDirectory::create("det-pg-killed");
  REQUIRE(temporary);
  for (const std::string& name : {std::string("/postgres"), "/" + std::string(120, 'x')}) {
    db::PrivateServer server = start(temporary->path() + name);
    const std::string url = server.url();
    const int pid = server.pid();
    write_number(server, 1);
    CHECK(server.keep_up());
    CHECK(server.pid() == pid);
    REQUIRE(kill(pid, SIGKILL) == 0);
    for (int tries = 0; server.pid() == pid && tries < 100000; ++tries) REQUIRE(server.keep_up());
    CHECK(server.pid() != pid);
    CHECK(server.url() == url);
    CHECK(count(server) == 1);
  }
}

TEST_CASE("data directories with long paths or root-only access work") {
  auto temporary = TemporaryDirectory::create("det-pg-long");
  REQUIRE(temporary);
  // Mode 0700 and owned by root: the user postgres cannot traverse it.
  struct stat top {};
  REQUIRE(stat(temporary->path().c_str(), &top) == 0);
  REQUIRE((top.st_mode & 0777) == 0700);
  const std::string directory = temporary->path() + "/" + std::string(120, 'd') + "/postgres";
  REQUIRE(make_directories(directory));
  db::PrivateServer server = start(directory);
  write_number(server, 1);
  CHECK(count(server) == 1);
  const std::string url = server.url();
  const std::string socket = url.substr(6, url.find('\'', 6) - 6);
  CHECK(socket.starts_with("/tmp/"));
  CHECK(server.stop());
  CHECK_FALSE(path_exists(socket));
}

TEST_CASE("a data directory of another PostgreSQL version is refused with instructions") {
  auto temporary = TemporaryDirectory::create("det-pg-old");
  REQUIRE(temporary);
  const std::string directory = temporary->path() + "/postgres";
  start(directory);
  const std::string version = directory + "/data/PG_VERSION";
  REQUIRE(write_file_atomic(version, "12\n", 0644));
  const auto old = db::PrivateServer::start({.directory = directory});
  REQUIRE_FALSE(old);
  CHECK(old.error().code == Code::kFailedPrecondition);
  CHECK_THAT(old.error().message, Catch::Contains("PostgreSQL 12") && Catch::Contains("postgresql-12"));
}

TEST_CASE("an interrupted initdb is repeated") {
  auto temporary = TemporaryDirectory::create("det-pg-half");
  REQUIRE(temporary);
  const std::string directory = temporary->path() + "/postgres";
  REQUIRE(make_directories(directory + "/data.new/base"));
  REQUIRE(write_file_atomic(directory + "/data.new/PG_VERSION", "15\n"));
  const db::PrivateServer server = start(directory);
  CHECK(server.pid() > 0);
}

}  // namespace det::test
