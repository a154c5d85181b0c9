#include "archive_seeds.h"

#include "../base/tar_builder.h"
#include "common/archive/archive.h"

namespace det::fuzz {

std::map<std::string, std::string> archive_seeds() {
  namespace tb = tar_builder;
  std::map<std::string, std::string> seeds;
  seeds["empty"] = "";
  seeds["no_entries"] = tb::end();
  seeds["one_file"] = tb::file("model_def.cpp", "int x;\n") + tb::end();
  seeds["directories"] =
      tb::entry({"./", "", '5', 0755}) + tb::entry({"a/", "", '5'}) + tb::file("a/b") + tb::end();
  seeds["prefix"] = tb::entry({"name", "x", '0', 0644, "", "some/prefix"}) + tb::end();
  seeds["pax_path"] = tb::pax("path", std::string(150, 'p')) + tb::file("short") + tb::end();
  seeds["pax_size"] = tb::pax("size", "1") + tb::file("sized") + tb::end();
  seeds["pax_global"] = tb::pax("comment", "x", 'g') + tb::file("f") + tb::end();
  seeds["gnu_long_name"] =
      tb::entry({"././@LongLink", std::string(120, 'n'), 'L'}) + tb::file("f") + tb::end();
  seeds["parent"] = tb::file("../x") + tb::end();
  seeds["link"] = tb::entry({"l", "", '2', 0777, "/"}) + tb::end();
  seeds["sparse"] = tb::pax("GNU.sparse.major", "1") + tb::file("s") + tb::end();
  seeds["twice"] = tb::file("a") + tb::file("a") + tb::end();
  seeds["base256"] =
      tb::entry({"b", "", '0', 0644, "", "", std::string("\x80\0\0\0\0\0\0\0\0\0\0", 11) + "\1"}) + tb::end();
  seeds["cut"] = tb::file("a", std::string(700, 'x')).substr(0, 900);
  if (auto packed = pack_entries({{"a/b", "text"}, {"run", "x", false, 0755}, {"d", "", true}}))
    seeds["packed_gz"] = *packed;
  return seeds;
}

}  // namespace det::fuzz
