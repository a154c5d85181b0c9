// Methods of gRPC services as typed constants. write_methods.cc generates the constants from the .proto files
// into det/v1/NAME.methods.h, for example v1::ClusterService::GetAgents, and v1::ClusterService::full_name.
#pragma once

namespace det {

/// A unary method. `path` is its name on the wire, "/det.v1.ClusterService/GetAgents", and a static string.
template <typename RequestType, typename ResponseType>
struct UnaryMethod {
  using Request = RequestType;
  using Response = ResponseType;
  const char* path;
};
/// A method whose response is a stream.
template <typename Request, typename Response>
struct ServerStreamMethod {
  const char* path;
};
/// A method whose request is a stream.
template <typename Request, typename Response>
struct ClientStreamMethod {
  const char* path;
};
template <typename Request, typename Response>
struct BidiStreamMethod {
  const char* path;
};

}  // namespace det
