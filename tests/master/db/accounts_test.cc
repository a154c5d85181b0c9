// Owns the tests of users, sessions, the cluster's identity and stored contexts.
#include "master/db/accounts.h"

#include <catch2/catch.hpp>

#include "master/db/queries_model.h"
#include "tests/master/db/database.h"

namespace det::test {

TEST_CASE("the cluster's identity is made once") {
  const Database database;
  db::Pool pool(database.connect());
  const auto first = db::load_cluster(pool);
  REQUIRE(first);
  CHECK(first->id.size() == 36);
  CHECK(first->secret.size() == 32);
  const auto second = db::load_cluster(pool);
  REQUIRE(second);
  CHECK(second->id == first->id);
  CHECK(second->secret == first->secret);
}

TEST_CASE("the first admin is made only in an empty cluster") {
  const Database database;
  db::Pool pool(database.connect());
  CHECK(db::create_first_admin(pool, "admin", "hash") == false);  // the test's own user is there
  REQUIRE(database.connection().query("DELETE FROM users"));
  CHECK(db::create_first_admin(pool, "admin", "hash") == true);
  CHECK(db::create_first_admin(pool, "admin", "other") == false);
  const auto admin = db::find_user(pool, "ADMIN");
  REQUIRE(admin);
  CHECK(admin->name == "admin");
  CHECK(admin->admin);
  CHECK(db::password_hash(pool, admin->id) == std::string("hash"));
  REQUIRE(db::set_password_hash(pool, admin->id, "new"));
  CHECK(db::password_hash(pool, admin->id) == std::string("new"));
  CHECK(db::set_password_hash(pool, UserId(99), "x").error().code == Code::kNotFound);
}

TEST_CASE("names are taken whatever their case") {
  const Database database;
  db::Pool pool(database.connect());
  const auto bob = db::create_user(pool, "Bob", "hash", false);
  REQUIRE(bob);
  CHECK(db::create_user(pool, "bob", "hash", false).error().code == Code::kAlreadyExists);
  CHECK(db::get_user(pool, *bob)->name == "Bob");
  CHECK_FALSE(db::get_user(pool, *bob)->admin);
  CHECK(db::find_user(pool, "nobody").error().code == Code::kNotFound);
}

TEST_CASE("a session lives until it ends, is deleted, or its user is put out") {
  const Database database;
  db::Pool pool(database.connect());
  const UserId ada(1);
  const auto id = db::create_session(pool, ada, "token-a", std::chrono::hours(1));
  REQUIRE(id);
  auto session = db::find_session(pool, "token-a");
  REQUIRE(session);
  CHECK(session->id == *id);
  CHECK(session->user.name == "ada");
  CHECK(session->user.last_auth);
  const WallTime before = session->expires;
  REQUIRE(db::touch_session(pool, *id, std::chrono::hours(2)));
  CHECK(db::find_session(pool, "token-a")->expires > before);

  REQUIRE(db::create_session(pool, ada, "token-b", std::chrono::hours(-1)));
  CHECK(db::find_session(pool, "token-b").error().code == Code::kNotFound);
  CHECK(db::delete_expired_sessions(pool) == 1);

  REQUIRE(database.connection().query("UPDATE users SET active = false"));
  CHECK_FALSE(db::find_session(pool, "token-a"));
  REQUIRE(database.connection().query("UPDATE users SET active = true"));
  CHECK(db::find_session(pool, "token-a"));
  REQUIRE(db::delete_session(pool, "token-a"));
  REQUIRE(db::delete_session(pool, "token-a"));
  CHECK_FALSE(db::find_session(pool, "token-a"));
  CHECK(db::create_session(pool, UserId(99), "token-c", std::chrono::hours(1)).error().code ==
        Code::kNotFound);
}

TEST_CASE("a context is stored once by its content") {
  const Database database;
  db::Pool pool(database.connect());
  const std::string tgz("\x1f\x8b\0binary\xff", 10);
  const auto digest = db::put_model_definition(pool, tgz);
  REQUIRE(digest);
  CHECK(db::put_model_definition(pool, tgz) == *digest);
  CHECK(digest->size() == 64);
  CHECK(db::get_model_definition(pool, *digest) == tgz);
  CHECK(db::get_model_definition(pool, "no such").error().code == Code::kNotFound);
  CHECK(db::get_model_definition(pool, ExperimentId(1)).error().code == Code::kNotFound);
}

}  // namespace det::test
