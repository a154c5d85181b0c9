// The expected values are Amazon's published examples ("Authenticating Requests: Using the Authorization
// Header (AWS Signature Version 4)" in the Amazon S3 API reference).
#include "common/storage/signature.h"

#include <catch2/catch.hpp>

#include "common/crypto/digest.h"

namespace det::storage {
namespace {

struct Example {
  const char* what;
  Unsigned request;
  const char* signed_headers;
  const char* signature;
};

std::vector<Example> examples() {
  const std::string host = "examplebucket.s3.amazonaws.com", nothing = sha256_hex("");
  return {{"GET Object",
           {"GET", "/test.txt", {}, {{"host", host}, {"range", "bytes=0-9"}}, nothing},
           "host;range;x-amz-content-sha256;x-amz-date",
           "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
          {"PUT Object",
           {"PUT",
            "/test$file.text",
            {},
            {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
             {"host", host},
             {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
            sha256_hex("Welcome to Amazon S3.")},
           "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
           "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
          {"GET Bucket lifecycle",
           {"GET", "/", {{"lifecycle", ""}}, {{"host", host}}, nothing},
           "host;x-amz-content-sha256;x-amz-date",
           "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
          {"List Objects",
           {"GET", "/", {{"max-keys", "2"}, {"prefix", "J"}}, {{"host", host}}, nothing},
           "host;x-amz-content-sha256;x-amz-date",
           "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"}};
}

}  // namespace

TEST_CASE("signatures match Amazon's examples") {
  const Location location{.bucket = "examplebucket",
                          .prefix = {},
                          .endpoint = {},
                          .region = "us-east-1",
                          .access_key = "AKIAIOSFODNN7EXAMPLE",
                          .secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                          .session_token = {}};
  for (Example& example : examples()) {
    INFO(example.what);
    sign(example.request, location, "20130524T000000Z");
    CHECK(example.request.headers["authorization"] ==
          std::string("AWS4-HMAC-SHA256 "
                      "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders=") +
              example.signed_headers + ",Signature=" + example.signature);
  }
}

TEST_CASE("a session token is sent and signed") {
  Unsigned request{"GET", "/", {}, {{"host", "h"}}, sha256_hex("")};
  Location location{.bucket = "b",
                    .prefix = {},
                    .endpoint = {},
                    .access_key = "A",
                    .secret_key = "S",
                    .session_token = "T"};
  sign(request, location, "20130524T000000Z");
  CHECK(request.headers["x-amz-security-token"] == "T");
  CHECK_THAT(request.headers["authorization"], Catch::Contains("x-amz-security-token,Signature="));
}

TEST_CASE("names are percent-encoded except letters, digits and - . _ ~") {
  CHECK(percent_encoded("a b+c/d~e=\xc3\xa4%41") == "a%20b%2Bc%2Fd~e%3D%C3%A4%2541");
  CHECK(percent_encoded("/a b/c", true) == "/a%20b/c");
  CHECK(encoded_query({{"uploads", ""}, {"prefix", "a/b c"}, {"delimiter", "/"}}) ==
        "delimiter=%2F&prefix=a%2Fb%20c&uploads=");
}

}  // namespace det::storage
