// Builds valid and invalid tar archives byte by byte, independent of the writer under test.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace tar_builder {

struct Fields {
  std::string name;
  std::string content;
  char type = '0';
  unsigned mode = 0644;
  std::string link;
  std::string prefix;
  std::string size_field;  ///< 12 raw bytes that replace the content's size
  std::string magic = std::string("ustar\00000", 8);
};

inline std::string octal(std::uint64_t value, int width) {
  char text[32];
  std::snprintf(text, sizeof text, "%0*llo", width, static_cast<unsigned long long>(value));
  return text;
}

inline std::string padded(std::string content) {
  content.resize((content.size() + 511) / 512 * 512, '\0');
  return content;
}

/// One entry: a header with a correct checksum, and the padded content.
inline std::string entry(const Fields& fields) {
  std::string block(512, '\0');
  const auto put = [&](std::size_t at, std::string_view text) { block.replace(at, text.size(), text); };
  put(0, std::string_view(fields.name).substr(0, 100));
  put(100, octal(fields.mode, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, fields.size_field.empty() ? octal(fields.content.size(), 11) : fields.size_field);
  put(136, octal(0, 11));
  put(148, "        ");
  block[156] = fields.type;
  put(157, std::string_view(fields.link).substr(0, 100));
  put(257, fields.magic);
  put(345, fields.prefix);
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return block + padded(fields.content);
}

inline std::string file(const std::string& name, const std::string& content = "x") {
  return entry({name, content});
}

inline std::string end() { return std::string(1024, '\0'); }

inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::string body = " " + key + "=" + value + "\n";
  std::size_t length = body.size() + 1;
  while (std::to_string(length).size() + body.size() != length) ++length;
  return std::to_string(length) + body;
}

/// An extended (pax) header for the entry that follows it.
inline std::string pax(const std::string& key, const std::string& value, char type = 'x') {
  return entry({"PaxHeader", pax_record(key, value), type});
}

}  // namespace tar_builder
