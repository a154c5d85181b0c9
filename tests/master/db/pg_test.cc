// The libpq wrapper: value conversions, error codes, transactions, and the connection pool.
#include "master/db/pg/pg.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <thread>

#include "tests/master/db/database.h"

namespace det::test {

TEST_CASE("values survive the round trip bit for bit") {
  const Database database(false);
  db::Connection connection = database.connection();
  const std::string bytes("\0\xff\x80 raw", 7);
  auto rows = connection.query(
      "SELECT $1::bigint, $2::float8, $3::boolean, $4::text, $5::bytea, $6::timestamptz, $7::text,"
      " $8::bigint[], $9::text[], 7::int",
      std::numeric_limits<std::int64_t>::min(), -0.0, true, "it's \"é\" $1 \\", db::Bytes{bytes},
      WallTime{-1}, std::optional<std::string>(), std::vector<std::int64_t>{1, -2},
      std::vector<std::string>{"a,b", "", "\"{\\}\""});
  REQUIRE(rows);
  auto row = (*rows)[0];
  CHECK(row.next<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
  CHECK(std::signbit(row.next<double>()));
  CHECK(row.next<bool>());
  CHECK(row.next<std::string>() == "it's \"é\" $1 \\");
  CHECK(row.next<std::string>() == bytes);
  CHECK(row.next<WallTime>() == WallTime{-1});
  CHECK_FALSE(row.next<std::optional<std::string>>());
  CHECK(row.next<std::vector<std::int64_t>>() == std::vector<std::int64_t>{1, -2});
  CHECK(row.next<std::vector<std::string>>() == std::vector<std::string>{"a,b", "", "\"{\\}\""});
  CHECK(row.next<std::int32_t>() == 7);

  for (double value : {std::nan(""), std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::denorm_min(), 0.1}) {
    auto echoed = connection.query("SELECT $1::float8", value);
    REQUIRE(echoed);
    const auto back = (*echoed)[0].next<double>();
    CHECK((back == value || (std::isnan(back) && std::isnan(value))));
  }
}

TEST_CASE("an empty array stays an array") {
  const Database database(false);
  auto rows = database.connection().query("SELECT cardinality($1::text[]), cardinality($2::bigint[])",
                                          std::vector<std::string>{}, std::vector<std::int64_t>{});
  REQUIRE(rows);
  auto row = (*rows)[0];
  CHECK(row.next<std::int64_t>() == 0);
  CHECK(row.next<std::int64_t>() == 0);
}

TEST_CASE("failures map to distinct error codes") {
  const Database database(false);
  db::Connection connection = database.connection();
  REQUIRE(connection.script("CREATE TABLE t (x int PRIMARY KEY CHECK (x > 0)); INSERT INTO t VALUES (1)"));
  const auto code = [&](const char* sql) {
    auto rows = connection.query(sql);
    return rows ? Code(0) : rows.error().code;
  };
  CHECK(code("INSERT INTO t VALUES (1)") == Code::kAlreadyExists);
  CHECK(code("INSERT INTO t VALUES (0)") == Code::kFailedPrecondition);
  CHECK(code("SELECT 'x'::int") == Code::kInvalidArgument);
  CHECK(code("SELECT 'a' ~ '('") == Code::kInvalidArgument);
  CHECK(code("SELEC") == Code::kInternal);
  REQUIRE(connection.script("SET statement_timeout = 20"));
  CHECK(code("SELECT pg_sleep(5)") == Code::kDeadlineExceeded);
  CHECK(connection.alive());
  CHECK(code("SELECT pg_terminate_backend(pg_backend_pid())") == Code::kUnavailable);
  CHECK_FALSE(connection.alive());
  CHECK(db::is_retryable({Code::kUnavailable, "", {}}));
  CHECK_FALSE(db::is_retryable({Code::kUnknown, "", {}}));
}

TEST_CASE("statements of one transaction are applied atomically") {
  const Database database(false);
  db::Connection connection = database.connection();
  REQUIRE(connection.script("CREATE TABLE t (x bigint PRIMARY KEY)"));
  const auto insert = [](std::int64_t x) {
    return db::Statement{"INSERT INTO t VALUES ($1)", db::Params(x)};
  };
  const auto move = [](std::int64_t from) {
    return db::Statement{"UPDATE t SET x = -x WHERE x = $1", db::Params(from), true};
  };
  for (int round = 0; round < 3; ++round) {
    const Status bad = connection.transact({insert(1), insert(2), insert(1), insert(3)});
    REQUIRE_FALSE(bad);
    CHECK(bad.error().code == Code::kAlreadyExists);
    CHECK(database.number("SELECT count(*) FROM t") == 0);
    const Status missing = connection.transact({insert(1), move(7), insert(2)});
    REQUIRE_FALSE(missing);
    CHECK(missing.error().code == Code::kInternal);
    CHECK(missing.error().message == "database: no row to change for: UPDATE t SET x = -x WHERE x = $1");
    CHECK(database.number("SELECT count(*) FROM t") == 0);
  }
  std::vector<db::Statement> many;
  for (std::int64_t i = 0; i < 5000; ++i) many.push_back(insert(i));
  many.push_back(move(7));
  REQUIRE(connection.transact(many));
  CHECK(database.number("SELECT count(*) FROM t") == 5000);
  CHECK(database.number("SELECT min(x) FROM t") == -7);
  REQUIRE(connection.transact({}));
}

TEST_CASE(
    "a transaction refused at COMMIT is not applied, and a lost connection at COMMIT reports kUnknown") {
  const Database database(false);
  db::Connection connection = database.connection();
  REQUIRE(connection.script("CREATE TABLE t (x bigint PRIMARY KEY DEFERRABLE INITIALLY DEFERRED)"));
  const db::Statement insert{"INSERT INTO t VALUES (1)", db::Params()};
  for (int round = 0; round < 2; ++round) {
    const Status twice = connection.transact({insert, insert});
    REQUIRE_FALSE(twice);
    CHECK(twice.error().code == Code::kAlreadyExists);
    CHECK(database.number("SELECT count(*) FROM t") == 0);
  }
  REQUIRE(connection.transact({insert}));
  const Status cut = connection.transact({{"SELECT pg_terminate_backend(pg_backend_pid())", db::Params()}});
  REQUIRE_FALSE(cut);
  CHECK(cut.error().code == Code::kUnknown);
}

TEST_CASE("a pool reuses the most recently used connection") {
  const Database database(false);
  db::Pool pool(database.connect(), 4);
  const auto process = [](db::Connection& connection) { return Result<int>(connection.backend_pid()); };
  const auto first = pool.with<int>(process);
  REQUIRE(first);
  for (int i = 0; i < 5; ++i) CHECK(pool.with<int>(process) == first);
}

TEST_CASE("committing a failed transaction is an error") {
  const Database database(false);
  db::Connection connection = database.connection();
  REQUIRE(connection.begin());
  CHECK_FALSE(connection.query("SELECT 1/0"));
  CHECK_FALSE(connection.commit());
}

TEST_CASE("an unreachable server reports kUnavailable, and waiting for it can be canceled") {
  const db::ConnectOptions nowhere{.url = "host='/nonexistent' user=x dbname=x"};
  const auto connection = db::Connection::open(nowhere);
  REQUIRE_FALSE(connection);
  CHECK(connection.error().code == Code::kUnavailable);
  db::Pause pause;
  CHECK(db::open_patiently(nowhere, std::chrono::milliseconds(50), pause).error().code == Code::kUnavailable);
  std::thread canceler([&] { pause.cancel(); });
  CHECK(db::open_patiently(nowhere, std::chrono::hours(1), pause).error().code == Code::kCancelled);
  canceler.join();
}

TEST_CASE("prepared statements are separated by parameter types") {
  const Database database(false);
  db::Connection connection = database.connection();
  REQUIRE(connection.script("CREATE TABLE t (x int)"));
  for (int i = 0; i < 10; ++i) {
    REQUIRE(connection.script("INSERT INTO t VALUES (1)"));
    auto rows = connection.run_prepared("SELECT count(*) FROM t WHERE x = $1", db::Params(1));
    REQUIRE(rows);
    CHECK((*rows)[0].next<std::int64_t>() == i + 1);
    // The same bits mean another value as another type.
    auto number = connection.run_prepared("SELECT $1", db::Params(std::int64_t{3}));
    auto text = connection.run_prepared("SELECT $1", db::Params("3"));
    REQUIRE((number && text));
    CHECK((*number)[0].next<std::int64_t>() == 3);
    CHECK((*text)[0].next<std::string>() == "3");
  }
  CHECK_FALSE(connection.run_prepared("SELECT no such thing", db::Params()));
  // More statements than the cache holds, then a failed pipeline that clears it.
  for (int i = 0; i < 600; ++i) {
    auto rows = connection.run_prepared(("SELECT " + std::to_string(i)).c_str(), db::Params());
    REQUIRE(rows);
    CHECK((*rows)[0].next<std::int64_t>() == i);
  }
  CHECK_FALSE(connection.transact({{"SELECT 1/0", db::Params()}}));
  CHECK(connection.run_prepared("SELECT 599", db::Params()));
  CHECK(connection.transact({{"INSERT INTO t VALUES (2)", db::Params()}}));
}

TEST_CASE("copied rows survive the round trip, and one bad row fails the whole copy") {
  const Database database(false);
  db::Connection connection = database.connection();
  REQUIRE(
      connection.script("CREATE TABLE t (a bigint PRIMARY KEY, b integer, c text, d timestamptz, e json)"));
  constexpr const char* kCopy = "COPY t (a, b, c, d, e) FROM STDIN (FORMAT binary)";
  const auto add = [](db::CopyRows& rows, std::int64_t a, std::string_view c) {
    rows.row(5);
    rows.add(a);
    rows.add(std::int32_t{-7});
    rows.add(c);
    rows.add(WallTime{1'234'567'890'123'456});
    rows.add(R"({"x":  1e-300})");
  };
  const std::string large(3 << 20, 'x');
  db::CopyRows rows;
  CHECK(rows.empty());
  add(rows, INT64_MIN, "日\xff\0!");
  add(rows, INT64_MAX, large);
  REQUIRE(connection.copy(kCopy, rows));
  auto back = connection.query("SELECT a, b, c, d, e FROM t ORDER BY a");
  REQUIRE(back);
  REQUIRE(back->size() == 2);
  for (int i = 0; i < 2; ++i) {
    auto row = (*back)[i];
    CHECK(row.next<std::int64_t>() == (i == 0 ? INT64_MIN : INT64_MAX));
    CHECK(row.next<std::int64_t>() == -7);
    CHECK(row.next<std::string>() == (i == 0 ? "日\xEF\xBF\xBD" : large));
    CHECK(row.next<WallTime>() == WallTime{1'234'567'890'123'456});
    CHECK(row.next<std::string>() == R"({"x":  1e-300})");
  }
  db::CopyRows again;
  add(again, 1, "new");
  add(again, INT64_MAX, "there already");
  CHECK(connection.copy(kCopy, again).error().code == Code::kAlreadyExists);
  CHECK(connection.copy("COPY nothing FROM STDIN (FORMAT binary)", again).error().code == Code::kInternal);
  CHECK((*connection.query("SELECT count(*) FROM t"))[0].next<std::int64_t>() == 2);
}

TEST_CASE("the pool recovers after its connections were killed") {
  const Database database(false);
  db::Pool pool(database.connect(), 2);
  REQUIRE(pool.query("SELECT 1"));
  REQUIRE(
      database.connection().query("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                                  " WHERE datname = current_database() AND pid <> pg_backend_pid()"));
  CHECK(pool.query("SELECT 1"));
  CHECK(pool.query("SELECT 1"));
}

TEST_CASE("a transaction that fails halfway does not stay on the connection of the pool") {
  const Database database;
  db::Pool pool(database.connect(), 1);
  const auto failed = pool.with<int>([](db::Connection& connection) -> Result<int> {
    TRY(connection.script("BEGIN READ ONLY"));
    return fail(Code::kDataLoss, "unreadable");
  });
  REQUIRE_FALSE(failed);
  CHECK(pool.query("INSERT INTO workspaces (name) VALUES ('lab')"));
}

}  // namespace det::test
