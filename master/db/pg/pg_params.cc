// PostgreSQL's binary formats: encoding of parameters, decoding of columns.
#include <bit>
#include <cstring>

#include "common/base/log.h"
#include "common/base/text.h"
#include "master/db/pg/pg.h"

namespace det::db {
namespace {

// Type OIDs from PostgreSQL's pg_type.dat; they never change.
constexpr Oid kBool = 16, kBytea = 17, kInt8 = 20, kInt2 = 21, kInt4 = 23, kText = 25, kJson = 114,
              kFloat8 = 701, kVarchar = 1043, kTimestamptz = 1184, kName = 19;
constexpr Oid kByteaArray = 1001, kTextArray = 1009, kInt8Array = 1016, kTimestamptzArray = 1185;
/// 2000-01-01 in microseconds since 1970: PostgreSQL's timestamps count from there.
constexpr std::int64_t kEpoch = 946'684'800'000'000;

// PostgreSQL's binary formats are big-endian.
template <typename T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bytes[i] = static_cast<char>((static_cast<std::uint64_t>(value) >> (8 * (sizeof(T) - 1 - i))) & 0xff);
  out.append(bytes, sizeof(T));
}

template <typename T>
T get(std::string_view bytes, std::size_t at = 0) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return static_cast<T>(value);
}

/// PostgreSQL rejects NUL and invalid UTF-8 in text.
bool storable(std::string_view text) {
  return text.find('\0') == std::string_view::npos && !find_bad_utf8(text);
}

[[noreturn]] void wrong_type(const PGresult* result, int column) {
  log::error(
      "a column was read as the wrong type",
      {{"column", PQfname(result, column)}, {"type", static_cast<std::int64_t>(PQftype(result, column))}});
  std::abort();
}

/// Encodes a one-dimensional array without nulls; `write` appends element i without its length.
template <typename Write>
std::string array(Oid element, std::size_t count, const Write& write) {
  std::string out;
  // Header: dimensions, has-null flag, element type, then length and lower bound of the dimension.
  put<std::int32_t>(out, count == 0 ? 0 : 1);
  put<std::int32_t>(out, 0);
  put<std::uint32_t>(out, element);
  if (count == 0) return out;
  put<std::int32_t>(out, static_cast<std::int32_t>(count));
  put<std::int32_t>(out, 1);
  for (std::size_t i = 0; i < count; ++i) {
    // Reserve the length and patch it once the element is written.
    const std::size_t at = out.size();
    put<std::int32_t>(out, 0);
    write(i, out);
    std::string length;
    put<std::int32_t>(length, static_cast<std::int32_t>(out.size() - at - 4));
    out.replace(at, 4, length);
  }
  return out;
}

/// Calls `element` with the bytes of each array element; nulls are skipped.
template <typename Element>
void each(std::string_view bytes, const Element& element) {
  if (get<std::int32_t>(bytes) == 0) return;
  // 12: count of the first dimension. 20: end of the header.
  const auto count = get<std::int32_t>(bytes, 12);
  std::size_t at = 20;
  for (std::int32_t i = 0; i < count; ++i) {
    const auto length = get<std::int32_t>(bytes, at);
    at += 4;
    if (length < 0) continue;
    element(bytes.substr(at, static_cast<std::size_t>(length)));
    at += static_cast<std::size_t>(length);
  }
}

}  // namespace

void Params::add(std::int64_t value) {
  Value& added = values_.emplace_back(Value{kInt8, {}, false});
  put(added.bytes, value);
}
void Params::add(double value) {
  Value& added = values_.emplace_back(Value{kFloat8, {}, false});
  put(added.bytes, std::bit_cast<std::uint64_t>(value));
}
void Params::add(bool value) { values_.push_back({kBool, std::string(1, value ? '\1' : '\0'), false}); }
void Params::add(std::string_view text) {
  values_.push_back({kText, storable(text) ? std::string(text) : make_utf8(text), false});
}
void Params::add(Bytes bytes) { values_.push_back({kBytea, std::string(bytes.value), false}); }
void Params::add(WallTime time) {
  Value& added = values_.emplace_back(Value{kTimestamptz, {}, false});
  put(added.bytes, time.micros - kEpoch);
}
void Params::add(const std::vector<std::int64_t>& values) {
  values_.push_back(
      {kInt8Array, array(kInt8, values.size(), [&](std::size_t i, std::string& out) { put(out, values[i]); }),
       false});
}
void Params::add(const std::vector<std::string>& values) {
  values_.push_back({kTextArray,
                     array(kText, values.size(),
                           [&](std::size_t i, std::string& out) {
                             out += storable(values[i]) ? values[i] : make_utf8(values[i]);
                           }),
                     false});
}
void Params::add(const std::vector<Bytes>& values) {
  values_.push_back(
      {kByteaArray,
       array(kBytea, values.size(), [&](std::size_t i, std::string& out) { out += values[i].value; }),
       false});
}
void Params::add(const std::vector<WallTime>& values) {
  values_.push_back({kTimestamptzArray,
                     array(kTimestamptz, values.size(),
                           [&](std::size_t i, std::string& out) { put(out, values[i].micros - kEpoch); }),
                     false});
}

Params::View Params::view() const {
  View view;
  for (const Value& value : values_) {
    view.types.push_back(value.type);
    view.values.push_back(value.null ? nullptr : value.bytes.data());
    view.lengths.push_back(static_cast<int>(value.bytes.size()));
    // 1: binary format.
    view.formats.push_back(1);
  }
  return view;
}

// Signature, flags and length of the header extension.
CopyRows::CopyRows() : bytes_("PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19) {}
void CopyRows::row(int columns) {
  put(bytes_, static_cast<std::int16_t>(columns));
  empty_ = false;
}
void CopyRows::add(std::int64_t value) {
  put<std::int32_t>(bytes_, 8);
  put(bytes_, value);
}
void CopyRows::add(std::int32_t value) {
  put<std::int32_t>(bytes_, 4);
  put(bytes_, value);
}
void CopyRows::add(std::string_view text) {
  if (!storable(text)) {
    const std::string repaired = make_utf8(text);
    put(bytes_, static_cast<std::int32_t>(repaired.size()));
    bytes_ += repaired;
    return;
  }
  put(bytes_, static_cast<std::int32_t>(text.size()));
  bytes_ += text;
}
void CopyRows::add(WallTime time) { add(time.micros - kEpoch); }
void CopyRows::add_bytes(std::string_view bytes) {
  put(bytes_, static_cast<std::int32_t>(bytes.size()));
  bytes_ += bytes;
}

std::int64_t Rows::affected() const { return std::atoll(PQcmdTuples(result_.get())); }

std::string_view Rows::Row::cell() {
  const int column = column_++;
  // A NULL or a missing column is a mistake in the SQL, like a wrong type.
  if (column >= PQnfields(result_) || PQgetisnull(result_, row_, column)) wrong_type(result_, column);
  return {PQgetvalue(result_, row_, column), static_cast<std::size_t>(PQgetlength(result_, row_, column))};
}

void Rows::Row::read(std::int64_t& value) {
  // The width of an SQL integer expression is easy to get wrong, so every width is accepted.
  const Oid type = PQftype(result_, column_);
  const std::string_view bytes = cell();
  switch (type) {
    case kInt2:
      value = get<std::int16_t>(bytes);
      return;
    case kInt4:
      value = get<std::int32_t>(bytes);
      return;
    case kInt8:
      value = get<std::int64_t>(bytes);
      return;
    default:
      wrong_type(result_, column_ - 1);
  }
}
void Rows::Row::read(std::int32_t& value) { value = static_cast<std::int32_t>(next<std::int64_t>()); }
void Rows::Row::read(std::uint32_t& value) { value = static_cast<std::uint32_t>(next<std::int64_t>()); }
void Rows::Row::read(double& value) {
  if (PQftype(result_, column_) != kFloat8) wrong_type(result_, column_);
  value = std::bit_cast<double>(get<std::uint64_t>(cell()));
}
void Rows::Row::read(bool& value) {
  if (PQftype(result_, column_) != kBool) wrong_type(result_, column_);
  value = cell()[0] != 0;
}
void Rows::Row::read(std::string& value) {
  const Oid type = PQftype(result_, column_);
  if (type != kText && type != kJson && type != kBytea && type != kVarchar && type != kName)
    wrong_type(result_, column_);
  value = cell();
}
void Rows::Row::read(WallTime& value) {
  if (PQftype(result_, column_) != kTimestamptz) wrong_type(result_, column_);
  value.micros = get<std::int64_t>(cell()) + kEpoch;
}
void Rows::Row::read(std::vector<std::int64_t>& value) {
  if (PQftype(result_, column_) != kInt8Array) wrong_type(result_, column_);
  value.clear();
  each(cell(), [&](std::string_view bytes) { value.push_back(get<std::int64_t>(bytes)); });
}
void Rows::Row::read(std::vector<std::string>& value) {
  if (PQftype(result_, column_) != kTextArray) wrong_type(result_, column_);
  value.clear();
  each(cell(), [&](std::string_view bytes) { value.emplace_back(bytes); });
}

}  // namespace det::db
