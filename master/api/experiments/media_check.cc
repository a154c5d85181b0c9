// Validation of reported media.
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/base/json.h"
#include "common/storage/media_limits.h"
#include "master/api/experiments/media.h"

namespace det::api {
namespace {

tl::unexpected<Error> refuse_media(const std::string& why) { return fail(Code::kInvalidArgument, why); }

bool is_finite_number(const Json& value) { return value.is_number() && std::isfinite(value.get<double>()); }

Result<Json> parse_content(const std::string& content) {
  const auto json = parse_json(content, {.bytes = kMaxMediaBytes, .depth = 4});
  if (!json || !json->is_object()) return refuse_media("content: a JSON object is expected");
  return *json;
}

Status check_histogram(const std::string& content) {
  TRY_ASSIGN(const Json json, parse_content(content));
  const Json* edges = find_path(json, "edges");
  const Json* counts = find_path(json, "counts");
  if (edges == nullptr || counts == nullptr || !edges->is_array() || !counts->is_array() || json.size() != 2)
    return refuse_media("content: a histogram has the lists edges and counts, and nothing else");
  if (counts->empty() || counts->size() > kMaxMediaBins || edges->size() != counts->size() + 1)
    return refuse_media("content: a histogram has 1 to " + std::to_string(kMaxMediaBins) +
                        " counts and one edge more");
  for (std::size_t i = 0; i < edges->size(); ++i) {
    if (!is_finite_number((*edges)[i]) ||
        (i > 0 && (*edges)[i].get<double>() <= (*edges)[i - 1].get<double>()))
      return refuse_media("content: edges of a histogram are ascending finite numbers");
    if (i > 0 && (!is_finite_number((*counts)[i - 1]) || (*counts)[i - 1].get<double>() < 0))
      return refuse_media("content: counts of a histogram are finite numbers, 0 or more");
  }
  return {};
}

Status check_table(const std::string& content) {
  TRY_ASSIGN(const Json json, parse_content(content));
  const Json* columns = find_path(json, "columns");
  const Json* rows = find_path(json, "rows");
  if (columns == nullptr || rows == nullptr || !columns->is_array() || !rows->is_array() || json.size() != 2)
    return refuse_media("content: a table has the lists columns and rows, and nothing else");
  if (columns->empty() || columns->size() > kMaxMediaColumns || rows->size() > kMaxMediaRows)
    return refuse_media("content: a table has 1 to " + std::to_string(kMaxMediaColumns) +
                        " columns and at most " + std::to_string(kMaxMediaRows) + " rows");
  for (const Json& column : *columns)
    if (!column.is_string()) return refuse_media("content: the columns of a table are names");
  for (const Json& row : *rows) {
    if (!row.is_array() || row.size() != columns->size())
      return refuse_media("content: each row of a table has one value per column");
    for (const Json& value : row)
      if (!value.is_string() && !value.is_number() && !value.is_boolean() && !value.is_null())
        return refuse_media("content: values of a table are strings, numbers, true, false and null");
  }
  return {};
}

}  // namespace

Status check_media(const v1::ReportMediaRequest& request) {
  using Kind = v1::Media;
  if (!is_media_name(request.name()))
    return refuse_media(
        "name: 1 to 128 letters, digits, spaces and _ - . = are expected, in parts separated by slashes that "
        "begin with a letter, a digit, _, - or =");
  if (request.steps_completed() < 0) return refuse_media("steps_completed: must be 0 or more");
  if (request.caption().size() > kMaxMediaCaption || find_bad_utf8(request.caption()))
    return refuse_media("caption: must be UTF-8 of at most " + std::to_string(kMaxMediaCaption) + " bytes");
  const std::string& content = request.content();
  if (content.empty() || content.size() > kMaxMediaBytes)
    return refuse_media("content: must have 1 to " + std::to_string(kMaxMediaBytes) +
                        " bytes; save larger files in a checkpoint");
  const bool file = request.kind() == Kind::KIND_FILE;
  if (file ? !is_media_file_name(request.file_name()) : !request.file_name().empty())
    return refuse_media(
        "file_name: a report of KIND_FILE has one of letters, digits, spaces and _ - . =; others have none");
  switch (request.kind()) {
    case Kind::KIND_FILE:
      return {};
    case Kind::KIND_IMAGE:
      if (is_png_or_jpeg(content)) return {};
      return refuse_media("content: an image is a PNG or JPEG file");
    case Kind::KIND_TEXT:
      if (!find_bad_utf8(content) && content.find('\0') == content.npos) return {};
      return refuse_media("content: a text is UTF-8 without NUL");
    case Kind::KIND_HISTOGRAM:
      return check_histogram(content);
    case Kind::KIND_TABLE:
      return check_table(content);
    default:
      return refuse_media("kind: one of KIND_IMAGE, KIND_HISTOGRAM, KIND_TEXT, KIND_TABLE and KIND_FILE");
  }
}

}  // namespace det::api
