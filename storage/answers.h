// Owns reading what a store answers: XML of a stranger, within bounds. Names are those of the Amazon S3 API
// reference.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace det::storage {

struct Object {
  std::string key;
  std::int64_t size = 0;
  bool operator==(const Object&) const = default;
};
/// ListObjectsV2.
struct Page {
  std::vector<Object> objects;
  std::vector<std::string> folders;  ///< CommonPrefixes
  std::string next;                  ///< NextContinuationToken; "": this is the last one
};
/// ListMultipartUploads.
struct Uploads {
  struct One {
    std::string key, id;
  };
  std::vector<One> all;
  std::string next_key, next_id;  ///< markers; "": no more
};
/// <Error>, which may also come with status 200.
struct Refusal {
  std::string code, message, key;
};

// kDataLoss when it is not what it should be.
Result<Page> read_page(std::string_view xml);
Result<Uploads> read_uploads(std::string_view xml);
/// UploadId of CreateMultipartUpload.
Result<std::string> read_upload_id(std::string_view xml);
/// What DeleteObjects could not delete.
Result<std::vector<Refusal>> read_refusals(std::string_view xml);
/// Code "" when it is no <Error>.
Refusal read_refusal(std::string_view xml);

/// For writing: `&`, `<`, `>` and quotes as entities.
std::string xml_escaped(std::string_view text);

}  // namespace det::storage
