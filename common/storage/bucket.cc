#include "common/storage/bucket.h"

#include <openssl/evp.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "common/base/secret.h"
#include "common/base/text.h"
#include "common/crypto/digest.h"
#include "common/storage/bucket_call.h"
#include "common/storage/signature.h"

namespace det::storage {
namespace {

constexpr std::size_t kAtOnceRemoved = 1000;   // S3's limit of keys in DeleteObjects
constexpr std::size_t kMaxListed = 5'000'000;  // keys; bounds the memory of a listing

std::string md5_base64(std::string_view text) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  ::EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), &size, ::EVP_md5(),
               nullptr);
  digest.resize(size);
  return to_base64(digest);
}

}  // namespace

Bucket::Bucket(Location location, BucketOptions options) : location_(std::move(location)), options_(options) {
  if (location_.endpoint.empty()) {
    // Amazon's wildcard certificate does not cover a bucket name with dots, so those go into the path.
    const bool in_path = location_.bucket.find('.') != std::string::npos;
    host_ = (in_path ? "" : location_.bucket + ".") + "s3." + location_.region + ".amazonaws.com";
    origin_ = "https://" + host_;
    root_ = in_path ? "/" + location_.bucket + "/" : "/";
  } else {
    origin_ = location_.endpoint;
    host_ = origin_.substr(origin_.find("://") + 3);
    // libcurl omits the default port from the Host header, and the signature covers that header.
    const std::string usual = origin_.starts_with("https:") ? ":443" : ":80";
    if (host_.ends_with(usual)) host_.resize(host_.size() - usual.size());
    root_ = "/" + location_.bucket + "/";
  }
}

std::string Bucket::full(const std::string& key) const {
  return location_.prefix.empty() ? key : location_.prefix + "/" + key;
}

std::string Bucket::name_of(const std::string& key) const {
  return "s3://" + location_.bucket + "/" + full(key);
}

Status Bucket::put(const std::string& key, std::string_view content) const {
  TRY(call({.method = "PUT", .key = key, .body = content}));
  return {};
}

Result<std::string> Bucket::get(const std::string& key, std::int64_t limit) const {
  return call({.method = "GET", .key = key, .most_bytes = static_cast<std::size_t>(limit)});
}

Result<std::string> Bucket::get_range(const std::string& key, std::int64_t offset, std::int64_t count) const {
  if (count == 0) return std::string();
  TRY_ASSIGN(std::string bytes, call({.method = "GET",
                                      .key = key,
                                      .headers = {{"range", "bytes=" + std::to_string(offset) + "-" +
                                                                std::to_string(offset + count - 1)}},
                                      .most_bytes = static_cast<std::size_t>(count)}));
  if (static_cast<std::int64_t>(bytes.size()) != count)
    return fail(Code::kDataLoss, name_of(key) + " has not the bytes that it should have");
  return bytes;
}

Result<Bucket::Listing> Bucket::list(const std::string& start, bool flat, std::size_t most) const {
  Listing found;
  const std::size_t before = full("").size();
  std::map<std::string, std::string> query{{"list-type", "2"}, {"prefix", full(start)}};
  if (flat) query["delimiter"] = "/";
  // 1000 keys a page is S3's default and maximum.
  if (most < 1000) query["max-keys"] = std::to_string(most);
  for (;;) {
    TRY_ASSIGN(const std::string xml, call({.method = "GET", .key = "", .query = query}));
    TRY_ASSIGN(Page page, read_page(xml));
    for (Object& object : page.objects) {
      if (object.key.size() <= before) continue;
      object.key.erase(0, before);
      found.objects.push_back(std::move(object));
    }
    for (const std::string& folder : page.folders) {
      if (folder.size() > before) found.folders.push_back(folder.substr(before));
    }
    const std::size_t count = found.objects.size() + found.folders.size();
    if (page.next.empty() || count >= most) return found;
    if (count > kMaxListed)
      return fail(Code::kResourceExhausted, name_of(start) + ": too many objects to list");
    query["continuation-token"] = page.next;
  }
}

Status Bucket::remove(const std::vector<std::string>& keys) const {
  for (std::size_t begin = 0; begin < keys.size(); begin += kAtOnceRemoved) {
    const std::size_t end = std::min(keys.size(), begin + kAtOnceRemoved);
    TRY(remove_some({keys.begin() + static_cast<std::ptrdiff_t>(begin),
                     keys.begin() + static_cast<std::ptrdiff_t>(end)}));
  }
  return {};
}

Status Bucket::remove_some(const std::vector<std::string>& keys) const {
  // Fallback for stores without DeleteObjects. A missing object counts as deleted.
  const auto one_by_one = [&] {
    return together(keys.size(), [&](std::size_t i) -> Status {
      const auto done = call({.method = "DELETE", .key = keys[i]});
      if (!done && done.error().code != Code::kNotFound) return tl::unexpected(done.error());
      return {};
    });
  };
  if (keys.size() <= 1) return one_by_one();
  std::string body = "<Delete><Quiet>true</Quiet>";
  for (const std::string& key : keys) body += "<Object><Key>" + xml_escaped(full(key)) + "</Key></Object>";
  body += "</Delete>";
  const auto xml = call({.method = "POST",
                         .key = "",
                         .query = {{"delete", ""}},
                         .headers = {{"content-md5", md5_base64(body)}, {"content-type", "application/xml"}},
                         .body = body});
  // Stores report a missing DeleteObjects in different ways: 501, 405, or another error status.
  if (!xml && (xml.error().code == Code::kUnimplemented || xml.error().code == Code::kInternal))
    return one_by_one();
  if (!xml) return tl::unexpected(xml.error());
  if (xml->empty()) return {};
  TRY_ASSIGN(const auto refusals, read_refusals(*xml));
  if (refusals.empty()) return {};
  const Refusal& first = refusals.front();
  const Code code = first.code == "AccessDenied" ? Code::kPermissionDenied : Code::kUnavailable;
  return fail(code, "s3://" + location_.bucket + "/" + make_utf8(first.key) + " at " + origin_ +
                        " cannot be removed: " + make_utf8(first.code) + " " + make_utf8(first.message));
}

Status Bucket::abort_uploads(const std::string& start) const {
  std::map<std::string, std::string> query{{"uploads", ""}, {"prefix", full(start)}};
  const std::size_t before = full("").size();
  for (;;) {
    const auto xml = call({.method = "GET", .key = "", .query = query});
    if (!xml && xml.error().code == Code::kUnimplemented) return {};  // no multipart uploads to abort
    if (!xml) return tl::unexpected(xml.error());
    TRY_ASSIGN(const Uploads uploads, read_uploads(*xml));
    for (const Uploads::One& one : uploads.all) {
      if (!one.key.starts_with(full(start))) continue;
      const auto done =
          call({.method = "DELETE", .key = one.key.substr(before), .query = {{"uploadId", one.id}}});
      if (!done && done.error().code != Code::kNotFound) return tl::unexpected(done.error());
    }
    if (uploads.next_key.empty()) return {};
    query["key-marker"] = uploads.next_key;
    query["upload-id-marker"] = uploads.next_id;
  }
}

Status Bucket::check() const {
  // A unique key: several processes may check the same bucket at once.
  const std::string key = ".det-check-" + uuid4();
  TRY(put(key, "det"));
  TRY_ASSIGN(const std::string back, get(key, 64));
  TRY(list(key, false, 1));
  TRY(remove({key}));
  if (back != "det")
    return fail(Code::kDataLoss, name_of(key) + " at " + origin_ + " reads back as something else");
  return {};
}

Status Bucket::together(std::size_t count, const std::function<Status(std::size_t)>& act) const {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const std::size_t width = std::min(count, static_cast<std::size_t>(std::max(1, options_.at_once)));
  std::vector<Status> ends(width);
  // Each worker takes the next index, so fast and slow transfers balance. `ends[worker]` needs no lock.
  const auto work = [&](std::size_t worker) {
    for (std::size_t i = next++; i < count && !failed; i = next++) {
      ends[worker] = act(i);
      if (!ends[worker]) failed = true;
      if (options_.part_done != nullptr) options_.part_done();
    }
  };
  std::vector<std::thread> others;
  for (std::size_t worker = 1; worker < width; ++worker) others.emplace_back(work, worker);
  // The calling thread is worker 0.
  if (width > 0) work(0);
  for (std::thread& other : others) other.join();
  for (Status& end : ends) {
    if (!end) return end;
  }
  return {};
}

}  // namespace det::storage
