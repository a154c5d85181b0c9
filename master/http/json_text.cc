// JSON of protobuf messages as Determined AI's gateway writes it: defaults present, unset messages as null,
// 64-bit integers as strings, numbers with the shortest digits. Pure.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "common/base/secret.h"
#include "master/http/transcode.h"

namespace det::http {
namespace {

namespace pb = google::protobuf;
using Field = pb::FieldDescriptor;

class JsonWriter {
 public:
  explicit JsonWriter(bool pretty) : pretty_(pretty) {}

  void write(const pb::Message& message) {
    const std::string& type = message.GetDescriptor()->full_name();
    if (type.starts_with("google.protobuf.") && write_well_known(message, type)) return;
    open('{');
    const pb::Descriptor& fields = *message.GetDescriptor();
    for (int i = 0; i < fields.field_count(); ++i) write_field(message, *fields.field(i));
    close('}');
  }

  std::string take() { return std::move(out_); }

 private:
  bool write_well_known(const pb::Message& message, const std::string& type) {
    if (type == "google.protobuf.Timestamp") {
      write_time(static_cast<const pb::Timestamp&>(message));
    } else if (type == "google.protobuf.Struct") {
      write_struct(static_cast<const pb::Struct&>(message));
    } else if (type == "google.protobuf.Value") {
      write_value(static_cast<const pb::Value&>(message));
    } else if (type == "google.protobuf.ListValue") {
      write_list(static_cast<const pb::ListValue&>(message));
    } else if (message.GetDescriptor()->file()->name() == "google/protobuf/wrappers.proto") {
      write_single(message, *message.GetDescriptor()->field(0));
    } else {
      return false;
    }
    return true;
  }

  void write_field(const pb::Message& message, const Field& field) {
    const pb::Reflection& reflection = *message.GetReflection();
    if (field.is_repeated()) {
      write_key(field.json_name());
      return field.is_map() ? write_map(message, field) : write_repeated(message, field);
    }
    const bool set = !field.has_presence() || reflection.HasField(message, &field);
    // Unset members of a oneof, and unset optional scalars, are absent.
    if (!set && (field.containing_oneof() != nullptr || field.message_type() == nullptr)) return;
    write_key(field.json_name());
    if (!set) {
      out_ += "null";
    } else {
      write_single(message, field);
    }
  }

  void write_single(const pb::Message& message, const Field& field) {
    const pb::Reflection& from = *message.GetReflection();
    std::string scratch;
    switch (field.cpp_type()) {
      case Field::CPPTYPE_INT32:
        return write_integer(from.GetInt32(message, &field));
      case Field::CPPTYPE_UINT32:
        return write_integer(from.GetUInt32(message, &field));
      case Field::CPPTYPE_INT64:
        return write_long(from.GetInt64(message, &field));
      case Field::CPPTYPE_UINT64:
        return write_long(from.GetUInt64(message, &field));
      case Field::CPPTYPE_DOUBLE:
        return write_number(from.GetDouble(message, &field));
      case Field::CPPTYPE_FLOAT:
        return write_number(from.GetFloat(message, &field));
      case Field::CPPTYPE_BOOL:
        return write_bool(from.GetBool(message, &field));
      case Field::CPPTYPE_ENUM:
        return write_enum(field, from.GetEnumValue(message, &field));
      case Field::CPPTYPE_STRING:
        return write_string(field, from.GetStringReference(message, &field, &scratch));
      case Field::CPPTYPE_MESSAGE:
        return write(from.GetMessage(message, &field));
    }
  }

  void write_repeated(const pb::Message& message, const Field& field) {
    const pb::Reflection& from = *message.GetReflection();
    std::string scratch;
    open('[');
    for (int i = 0, count = from.FieldSize(message, &field); i < count; ++i) {
      next();
      switch (field.cpp_type()) {
        case Field::CPPTYPE_INT32:
          write_integer(from.GetRepeatedInt32(message, &field, i));
          break;
        case Field::CPPTYPE_UINT32:
          write_integer(from.GetRepeatedUInt32(message, &field, i));
          break;
        case Field::CPPTYPE_INT64:
          write_long(from.GetRepeatedInt64(message, &field, i));
          break;
        case Field::CPPTYPE_UINT64:
          write_long(from.GetRepeatedUInt64(message, &field, i));
          break;
        case Field::CPPTYPE_DOUBLE:
          write_number(from.GetRepeatedDouble(message, &field, i));
          break;
        case Field::CPPTYPE_FLOAT:
          write_number(from.GetRepeatedFloat(message, &field, i));
          break;
        case Field::CPPTYPE_BOOL:
          write_bool(from.GetRepeatedBool(message, &field, i));
          break;
        case Field::CPPTYPE_ENUM:
          write_enum(field, from.GetRepeatedEnumValue(message, &field, i));
          break;
        case Field::CPPTYPE_STRING:
          write_string(field, from.GetRepeatedStringReference(message, &field, i, &scratch));
          break;
        case Field::CPPTYPE_MESSAGE:
          write(from.GetRepeatedMessage(message, &field, i));
          break;
      }
    }
    close(']');
  }

  /// Entries in the order of their keys, so that equal messages have equal texts.
  void write_map(const pb::Message& message, const Field& field) {
    const pb::Reflection& from = *message.GetReflection();
    std::vector<std::pair<std::string, const pb::Message*>> entries;
    for (int i = 0, count = from.FieldSize(message, &field); i < count; ++i) {
      const pb::Message& entry = from.GetRepeatedMessage(message, &field, i);
      entries.emplace_back(key_text(entry, *field.message_type()->map_key()), &entry);
    }
    std::sort(entries.begin(), entries.end());
    open('{');
    for (const auto& [key, entry] : entries) {
      write_key(key);
      write_single(*entry, *field.message_type()->map_value());
    }
    close('}');
  }

  static std::string key_text(const pb::Message& entry, const Field& key) {
    const pb::Reflection& from = *entry.GetReflection();
    if (key.cpp_type() == Field::CPPTYPE_STRING) return from.GetString(entry, &key);
    if (key.cpp_type() == Field::CPPTYPE_INT32) return std::to_string(from.GetInt32(entry, &key));
    if (key.cpp_type() == Field::CPPTYPE_INT64) return std::to_string(from.GetInt64(entry, &key));
    if (key.cpp_type() == Field::CPPTYPE_UINT32) return std::to_string(from.GetUInt32(entry, &key));
    if (key.cpp_type() == Field::CPPTYPE_UINT64) return std::to_string(from.GetUInt64(entry, &key));
    return from.GetBool(entry, &key) ? "true" : "false";
  }

  void write_struct(const pb::Struct& message) {
    std::vector<std::pair<std::string_view, const pb::Value*>> entries;
    entries.reserve(message.fields().size());
    for (const auto& [key, value] : message.fields()) entries.emplace_back(key, &value);
    std::sort(entries.begin(), entries.end());
    open('{');
    for (const auto& [key, value] : entries) {
      write_key(key);
      write_value(*value);
    }
    close('}');
  }

  void write_list(const pb::ListValue& list) {
    open('[');
    for (const pb::Value& value : list.values()) {
      next();
      write_value(value);
    }
    close(']');
  }

  void write_value(const pb::Value& value) {
    switch (value.kind_case()) {
      case pb::Value::kNumberValue:
        return write_number(value.number_value());
      case pb::Value::kStringValue:
        return write_text(value.string_value());
      case pb::Value::kBoolValue:
        return write_bool(value.bool_value());
      case pb::Value::kStructValue:
        return write_struct(value.struct_value());
      case pb::Value::kListValue:
        return write_list(value.list_value());
      case pb::Value::kNullValue:
      case pb::Value::KIND_NOT_SET:
        out_ += "null";
    }
  }

  /// Times before year 1 or after 9999 have no text.
  void write_time(const pb::Timestamp& time) {
    using Util = pb::util::TimeUtil;
    const bool valid = time.seconds() >= Util::kTimestampMinSeconds &&
                       time.seconds() <= Util::kTimestampMaxSeconds && time.nanos() >= 0 &&
                       time.nanos() < 1'000'000'000;
    if (valid) return write_text(Util::ToString(time));
    out_ += "null";
  }

  void write_bool(bool value) { out_ += value ? "true" : "false"; }

  template <typename Integer>
  void write_integer(Integer value) {
    out_ += std::to_string(value);
  }

  template <typename Integer>
  void write_long(Integer value) {
    out_ += '"' + std::to_string(value) + '"';
  }

  /// Shortest digits that read back as the same value. Without an exponent between 1e-6 and 1e21, as in Go.
  template <typename Real>
  void write_number(Real value) {
    if (std::isnan(value)) return write_text("NaN");
    if (std::isinf(value)) return write_text(value > 0 ? "Infinity" : "-Infinity");
    const Real size = std::abs(value);
    const bool fixed = size == 0 || (size >= Real(1e-6) && size < Real(1e21));
    char digits[64];
    const auto format = fixed ? std::chars_format::fixed : std::chars_format::scientific;
    out_.append(digits, std::to_chars(digits, digits + sizeof digits, value, format).ptr);
  }

  void write_enum(const Field& field, int number) {
    // Numbers of a newer protocol have no name.
    const pb::EnumValueDescriptor* value = field.enum_type()->FindValueByNumber(number);
    if (value == nullptr) return write_integer(number);
    write_text(value->name());
  }

  void write_string(const Field& field, const std::string& text) {
    write_text(field.type() == Field::TYPE_BYTES ? to_base64(text) : text);
  }

  void write_text(std::string_view text) {
    constexpr std::string_view kHex = "0123456789abcdef";
    out_ += '"';
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (c == '\n') {
        out_ += "\\n";
      } else if (byte < 0x20 || c == '<' || c == '>') {
        // Angle brackets are escaped for pages that embed the text.
        out_ += "\\u00";
        out_ += kHex[byte >> 4];
        out_ += kHex[byte & 15];
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }

  void write_key(std::string_view key) {
    next();
    write_text(key);
    out_ += pretty_ ? ": " : ":";
  }

  void open(char bracket) {
    out_ += bracket;
    ++depth_;
    first_ = true;
  }

  /// Begins the next element of the innermost bracket.
  void next() {
    if (!first_) out_ += ',';
    first_ = false;
    line();
  }

  void close(char bracket) {
    --depth_;
    if (!first_) line();
    out_ += bracket;
    first_ = false;
  }

  void line() {
    if (!pretty_) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(depth_) * 2, ' ');
  }

  const bool pretty_;
  std::string out_;
  int depth_ = 0;
  bool first_ = true;
};

}  // namespace

std::string to_json_text(const pb::Message& message, bool pretty) {
  JsonWriter writer(pretty);
  writer.write(message);
  return writer.take();
}

}  // namespace det::http
