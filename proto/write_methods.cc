// write_methods DESCRIPTORS DIRECTORY: writes NAME.methods.h for each .proto file of a descriptor set (protoc
// --descriptor_set_out) that has services. It replaces gRPC's generated stubs: those instantiate a client and
// four kinds of servers for each method, in every source that includes them.
#include <google/protobuf/descriptor.pb.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace {

namespace pb = google::protobuf;

/// ".det.v1.Trial" → "::det::v1::Trial".
std::string cpp_name(const std::string& type) {
  std::string name;
  for (const char c : type) c == '.' ? name += "::" : name += c;
  return name;
}

const char* kind_of(const pb::MethodDescriptorProto& method) {
  if (method.client_streaming()) return method.server_streaming() ? "BidiStreamMethod" : "ClientStreamMethod";
  return method.server_streaming() ? "ServerStreamMethod" : "UnaryMethod";
}

std::string header_of(const pb::FileDescriptorProto& file) {
  const std::string stem = file.name().substr(0, file.name().rfind(".proto"));
  std::string text = "// Generated from " + file.name() + " by write_methods.\n#pragma once\n\n#include \"" +
                     stem + ".pb.h\"\n#include \"proto/method.h\"\n\nnamespace " +
                     cpp_name("." + file.package()).substr(2) + " {\n";
  for (const pb::ServiceDescriptorProto& service : file.service()) {
    const std::string full_name = file.package() + "." + service.name();
    text += "\nstruct " + service.name() + " {\n  static constexpr const char* full_name = \"" + full_name +
            "\";\n";
    for (const pb::MethodDescriptorProto& method : service.method())
      text += std::string("  static constexpr ") + kind_of(method) + "<" + cpp_name(method.input_type()) +
              ", " + cpp_name(method.output_type()) + "> " + method.name() + "{\"/" + full_name + "/" +
              method.name() + "\"};\n";
    text += "};\n";
  }
  return text + "\n}  // namespace\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: write_methods DESCRIPTORS DIRECTORY\n");
    return 2;
  }
  std::ifstream in(argv[1], std::ios::binary);
  pb::FileDescriptorSet files;
  if (!files.ParseFromIstream(&in)) {
    std::fprintf(stderr, "%s: cannot be read as a descriptor set\n", argv[1]);
    return 1;
  }
  for (const pb::FileDescriptorProto& file : files.file()) {
    if (file.service().empty()) continue;
    const std::string path =
        std::string(argv[2]) + "/" + file.name().substr(0, file.name().rfind(".proto")) + ".methods.h";
    std::ofstream out(path, std::ios::trunc);
    if (!(out << header_of(file)) || !out.flush()) {
      std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
      return 1;
    }
  }
  return 0;
}
