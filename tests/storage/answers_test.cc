#include "common/storage/answers.h"

#include <catch2/catch.hpp>

namespace det::storage {

TEST_CASE("a page of a listing is parsed with its names unescaped") {
  const auto page = read_page(R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix/><KeyCount>2</KeyCount>
<Contents><Key>a &amp; b/&lt;1&gt;.jpg</Key><LastModified>2026-11-27T04:40:13.000Z</LastModified>
<Size>12345678901</Size></Contents>
<CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes><IsTruncated>true</IsTruncated>
<NextContinuationToken>+/=</NextContinuationToken></ListBucketResult>)");
  REQUIRE(page);
  CHECK(page->objects == std::vector<Object>{{"a & b/<1>.jpg", 12345678901, "2026-11-27T04:40:13.000Z"}});
  CHECK(page->folders == std::vector<std::string>{"c/"});
  CHECK(page->next == "+/=");
}

TEST_CASE("a malformed answer is data loss, even if very deep or very long") {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  for (const std::string& text :
       {std::string(), std::string("<html>a login page</html>"), std::string("<ListBucketResult>"),
        std::string("{}"), deep,
        std::string("<ListBucketResult><Contents><Key>k</Key><Size>-1</Size></Contents></ListBucketResult>"),
        std::string("<ListBucketResult><Contents><Key>k</Key></Contents></ListBucketResult>"),
        std::string("<!DOCTYPE a [<!ENTITY b \"c\">]><ListBucketResult></ListBucketResult>"),
        std::string(17 << 20, ' ')}) {
    const auto page = read_page(text);
    REQUIRE_FALSE(page);
    CHECK(page.error().code == Code::kDataLoss);
  }
  CHECK_FALSE(read_upload_id("<InitiateMultipartUploadResult></InitiateMultipartUploadResult>"));
}

TEST_CASE("errors are found in error documents and in bulk-delete results") {
  CHECK(read_refusal("<Error><Code>SlowDown</Code><Message>later</Message></Error>").code == "SlowDown");
  CHECK(read_refusal("<html></html>").code.empty());
  const auto refusals =
      read_refusals("<DeleteResult><Error><Key>k</Key><Code>AccessDenied</Code></Error></DeleteResult>");
  REQUIRE(refusals);
  REQUIRE(refusals->size() == 1);
  CHECK(refusals->front().key == "k");
}

}  // namespace det::storage
