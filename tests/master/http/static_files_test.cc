#include "master/http/static_files.h"

#include <catch2/catch.hpp>

#include "common/base/files.h"

namespace det {
namespace {

using http::Request;
using http::Response;
using http::StaticFiles;

std::string header(const Response& response, const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "";
}

struct Ui {
  TemporaryDirectory directory = *TemporaryDirectory::create();
  StaticFiles files;
  Ui() {
    const std::string root = directory.path() + "/ui";
    REQUIRE(make_directories(root + "/assets"));
    REQUIRE(write_file_atomic(directory.path() + "/secret.txt", "secret"));
    REQUIRE(write_file_atomic(root + "/index.html", "<p>page"));
    REQUIRE(write_file_atomic(root + "/assets/main-4F7QX2KD.js", "code"));
    REQUIRE(write_file_atomic(root + "/assets/main-4F7QX2KD.js.gz", "packed"));
    files = *StaticFiles::load(root);
  }
  Response get(const std::string& path, http::Headers headers = {}) const {
    return files.answer({.method = "GET", .path = path, .headers = std::move(headers)});
  }
};

TEST_CASE("the page is revalidated, hashed files are immutable") {
  const Ui ui;
  const Response page = ui.get("/det/");
  CHECK(page.body == "<p>page");
  CHECK(header(page, "Cache-Control") == "no-cache");
  CHECK(header(page, "Content-Type") == "text/html; charset=utf-8");
  const Response code = ui.get("/det/assets/main-4F7QX2KD.js");
  CHECK(code.body == "code");
  CHECK(header(code, "Cache-Control").find("immutable") != std::string::npos);
  const Response again = ui.get("/det/", {{"if-none-match", header(page, "ETag")}});
  CHECK(again.status == 304);
  CHECK(again.body.empty());
}

TEST_CASE("the compressed form is sent to clients that accept it") {
  const Ui ui;
  const std::string path = "/det/assets/main-4F7QX2KD.js";
  CHECK(ui.get(path, {{"accept-encoding", "br, gzip;q=0.8"}}).body == "packed");
  CHECK(header(ui.get(path, {{"accept-encoding", "gzip"}}), "Content-Encoding") == "gzip");
  CHECK(ui.get(path, {{"accept-encoding", "gzip;q=0"}}).body == "code");
  CHECK(ui.get("/det/", {{"accept-encoding", "gzip"}}).body == "<p>page");
}

TEST_CASE("application paths return the page, missing files return 404") {
  const Ui ui;
  CHECK(ui.get("/det/experiments/12").body == "<p>page");
  CHECK(ui.get("/det/assets/none.js").status == 404);
  CHECK(ui.get("/favicon.ico").status == 404);
  CHECK(header(ui.get("/"), "Location") == "/det/");
  CHECK(ui.files.answer({.method = "POST", .path = "/det/"}).status == 405);
}

TEST_CASE("no path escapes the table of files") {
  const Ui ui;
  for (const char* path :
       {"/det/../secret.txt", "/det/%2e%2e/secret.txt", "/det/..%2fsecret.txt", "/det/%252e%252e/secret.txt",
        "/det//etc/passwd", "/det/assets/../../secret.txt", "/det/%00", "/det/%ff", "/../secret.txt"}) {
    INFO(path);
    const Response response = ui.get(path);
    CHECK(response.body.find("secret") == std::string::npos);
    CHECK(response.body.find("root:") == std::string::npos);
  }
}

TEST_CASE("a missing directory gives an empty table") {
  const auto none = StaticFiles::load("/nowhere-at-all");
  REQUIRE(none);
  CHECK(none->empty());
}

}  // namespace
}  // namespace det
