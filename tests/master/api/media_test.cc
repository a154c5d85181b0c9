// Checks of reported media.
#include "master/api/experiments/media.h"

#include <catch2/catch.hpp>

#include "common/storage/media_limits.h"

namespace det::api {
namespace {

v1::ReportMediaRequest entry(v1::Media::Kind kind, const std::string& content) {
  v1::ReportMediaRequest request;
  request.set_trial_id(1);
  request.set_name("val/digit");
  request.set_steps_completed(3);
  request.set_kind(kind);
  request.set_content(content);
  if (kind == v1::Media::KIND_FILE) request.set_file_name("log.txt");
  return request;
}

TEST_CASE("media of every kind are accepted in their format") {
  CHECK(check_media(entry(v1::Media::KIND_IMAGE, "\x89PNG\r\n\x1a\n...")));
  CHECK(check_media(entry(v1::Media::KIND_IMAGE, "\xff\xd8\xff\xe0...")));
  CHECK(check_media(entry(v1::Media::KIND_HISTOGRAM, R"({"edges":[-1,0.5,2],"counts":[0,3]})")));
  CHECK(check_media(entry(v1::Media::KIND_TEXT, "# K\xc3\xa4se")));
  CHECK(check_media(entry(v1::Media::KIND_TABLE, R"({"columns":["a","b"],"rows":[["x",1],[true,null]]})")));
  CHECK(check_media(entry(v1::Media::KIND_FILE, std::string("\0\xff", 2))));
}

TEST_CASE("media in another format are refused") {
  CHECK_FALSE(check_media(entry(v1::Media::KIND_UNSPECIFIED, "x")));
  for (const char* image : {"<svg/>", "GIF89a", "<html>", "\x89PN"}) {
    INFO(image);
    CHECK_FALSE(check_media(entry(v1::Media::KIND_IMAGE, image)));
  }
  for (const char* text : {"[]", "{}", R"({"edges":[0,1],"counts":[]})", R"({"edges":[0],"counts":[1]})",
                           R"({"edges":[1,1],"counts":[1]})", R"({"edges":[0,1],"counts":[-1]})",
                           R"({"edges":["0",1],"counts":[1]})", R"({"edges":[0,1],"counts":[1],"x":1})"}) {
    INFO(text);
    CHECK_FALSE(check_media(entry(v1::Media::KIND_HISTOGRAM, text)));
  }
  for (const char* text : {R"({"columns":[],"rows":[]})", R"({"columns":["a"],"rows":[[1,2]]})",
                           R"({"columns":["a"],"rows":[[{}]]})", R"({"columns":[1],"rows":[]})"}) {
    INFO(text);
    CHECK_FALSE(check_media(entry(v1::Media::KIND_TABLE, text)));
  }
  CHECK_FALSE(check_media(entry(v1::Media::KIND_TEXT, "\x80")));
  CHECK_FALSE(check_media(entry(v1::Media::KIND_TEXT, std::string("a\0", 2))));
}

TEST_CASE("media beyond a limit are refused") {
  CHECK(check_media(entry(v1::Media::KIND_TEXT, std::string(kMaxMediaBytes, 'x'))));
  CHECK_FALSE(check_media(entry(v1::Media::KIND_TEXT, std::string(kMaxMediaBytes + 1, 'x'))));
  CHECK_FALSE(check_media(entry(v1::Media::KIND_TEXT, "")));
  auto captioned = entry(v1::Media::KIND_TEXT, "x");
  captioned.set_caption(std::string(kMaxMediaCaption + 1, 'x'));
  CHECK_FALSE(check_media(captioned));
  auto early = entry(v1::Media::KIND_TEXT, "x");
  early.set_steps_completed(-1);
  CHECK_FALSE(check_media(early));
  auto named = entry(v1::Media::KIND_TEXT, "x");
  named.set_file_name("x");
  CHECK_FALSE(check_media(named));
  for (const char* name : {"../f", "a/b", ".bashrc", "", "a\"b"}) {
    auto file = entry(v1::Media::KIND_FILE, "x");
    file.set_file_name(name);
    INFO(name);
    CHECK_FALSE(check_media(file));
  }
}

}  // namespace
}  // namespace det::api
