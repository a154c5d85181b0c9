// Parsers of S3's XML responses. The input is untrusted and bounded. Names are those of the Amazon S3 API
// reference. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace det::storage {

/// An object of a bucket.
struct Object {
  std::string key;
  std::int64_t size = 0;  ///< bytes
  std::string modified;   ///< time of the last write, "2026-11-27T04:40:13.000Z"; such texts sort by time
  bool operator==(const Object&) const = default;
};
/// One page of ListObjectsV2.
struct Page {
  std::vector<Object> objects;
  std::vector<std::string> folders;  ///< CommonPrefixes
  std::string next;                  ///< NextContinuationToken; "" on the last page
};
/// One page of ListMultipartUploads.
struct Uploads {
  struct One {
    std::string key, id;
  };
  std::vector<One> all;
  std::string next_key, next_id;  ///< markers of the next page; "" on the last one
};
/// An <Error> element, which S3 also returns with status 200.
struct Refusal {
  std::string code, message, key;
};

// The parsers return kDataLoss if the text is not the expected document.
Result<Page> read_page(std::string_view xml);
Result<Uploads> read_uploads(std::string_view xml);
/// Returns the UploadId of CreateMultipartUpload.
Result<std::string> read_upload_id(std::string_view xml);
/// Returns the errors of DeleteObjects: the keys that were not deleted.
Result<std::vector<Refusal>> read_refusals(std::string_view xml);
/// Returns the error of a failed request; code "" if the body is not an <Error>.
Refusal read_refusal(std::string_view xml);

/// Escapes `&`, `<`, `>`, `"` and CR for use in XML text.
std::string xml_escaped(std::string_view text);

}  // namespace det::storage
