#include "common/storage/answers.h"

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>
#include <charconv>
#include <sstream>

namespace det::storage {
namespace {

using Tree = boost::property_tree::ptree;

constexpr std::size_t kMaxBytes = 16 << 20;  // size of a response
constexpr int kMaxDepth = 16;                // nesting; S3's responses stay well below

/// Rejects what the recursive XML parser must not see: deep nesting, DOCTYPE and entity declarations, NUL,
/// huge texts.
bool is_plain(std::string_view xml) {
  if (xml.size() > kMaxBytes || xml.find("<!") != xml.npos || xml.find('\0') != xml.npos) return false;
  int depth = 0;
  for (std::size_t at = 0; (at = xml.find('<', at)) != xml.npos; ++at) {
    const char next = at + 1 < xml.size() ? xml[at + 1] : '\0';
    // "<?xml ...?>" does not nest; "<a/>" opens and closes.
    if (next == '?') continue;
    depth += next == '/' ? -1 : 1;
    const std::size_t end = xml.find('>', at);
    if (end == xml.npos || depth > kMaxDepth) return false;
    if (xml[end - 1] == '/') --depth;
  }
  return true;
}

/// Parses the document and returns its root element, which must be called `name`.
Result<Tree> read_top(std::string_view xml, const char* name) {
  if (is_plain(xml)) {
    try {
      Tree tree;
      std::istringstream in{std::string(xml)};
      boost::property_tree::read_xml(in, tree);
      if (const auto top = tree.get_child_optional(name)) return *top;
    } catch (const boost::property_tree::ptree_error&) {  // reported below
    }
  }
  return fail(Code::kDataLoss, std::string("the store's answer is no ") + name);
}

Result<std::int64_t> read_size(const std::string& text) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return fail(Code::kDataLoss, "the store's answer has an object without a size");
  return value;
}

Refusal refusal_of(const Tree& tree) {
  return {tree.get("Code", ""), tree.get("Message", ""), tree.get("Key", "")};
}

bool is_true(const Tree& tree, const char* name) { return tree.get(name, "") == "true"; }

}  // namespace

Result<Page> read_page(std::string_view xml) {
  TRY_ASSIGN(const Tree top, read_top(xml, "ListBucketResult"));
  Page page;
  for (const auto& [name, child] : top) {
    if (name == "Contents") {
      TRY_ASSIGN(const std::int64_t size, read_size(child.get("Size", "")));
      page.objects.push_back({child.get("Key", ""), size, child.get("LastModified", "")});
    } else if (name == "CommonPrefixes") {
      page.folders.push_back(child.get("Prefix", ""));
    }
  }
  if (is_true(top, "IsTruncated")) page.next = top.get("NextContinuationToken", "");
  return page;
}

Result<Uploads> read_uploads(std::string_view xml) {
  TRY_ASSIGN(const Tree top, read_top(xml, "ListMultipartUploadsResult"));
  Uploads uploads;
  for (const auto& [name, child] : top) {
    if (name == "Upload") uploads.all.push_back({child.get("Key", ""), child.get("UploadId", "")});
  }
  if (is_true(top, "IsTruncated")) {
    uploads.next_key = top.get("NextKeyMarker", "");
    uploads.next_id = top.get("NextUploadIdMarker", "");
  }
  return uploads;
}

Result<std::string> read_upload_id(std::string_view xml) {
  TRY_ASSIGN(const Tree top, read_top(xml, "InitiateMultipartUploadResult"));
  std::string id = top.get("UploadId", "");
  if (id.empty()) return fail(Code::kDataLoss, "the store's answer has no UploadId");
  return id;
}

Result<std::vector<Refusal>> read_refusals(std::string_view xml) {
  TRY_ASSIGN(const Tree top, read_top(xml, "DeleteResult"));
  std::vector<Refusal> refusals;
  for (const auto& [name, child] : top) {
    if (name == "Error") refusals.push_back(refusal_of(child));
  }
  return refusals;
}

Refusal read_refusal(std::string_view xml) {
  const auto top = read_top(xml, "Error");
  return top ? refusal_of(*top) : Refusal{};
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\r':
        out += "&#13;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace det::storage
