// Base of the ends of a tunnel that are a stream of bytes.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <utility>

#include "agent/master_link/tunnel_end.h"

namespace det::agent {

/// Bytes of a socket become messages of a tunnel, in pieces of at most 64 KiB. connect() opens `socket_`.
template <typename Socket>
class StreamEnd : public TunnelEnd, public std::enable_shared_from_this<StreamEnd<Socket>> {
 public:
  explicit StreamEnd(boost::asio::io_context& io) : socket_(io) {}

  void read(v1::TunnelMessage& out, Done done) override {
    socket_.async_read_some(
        boost::asio::buffer(piece_),
        [self = this->shared_from_this(), &out, done = std::move(done)](Error error, std::size_t count) {
          if (self->closed_) return;
          if (error && error != boost::asio::error::eof) return done(false);
          out.Clear();
          error ? static_cast<void>(out.mutable_end()) : out.set_data(self->piece_.data(), count);
          done(true);
        });
  }

  void write(const v1::TunnelMessage& message, Done done) override {
    if (message.has_size()) return done(false);
    if (!message.has_data()) {
      Error ignored;
      socket_.shutdown(Socket::shutdown_send, ignored);
      return done(true);
    }
    boost::asio::async_write(
        socket_, boost::asio::buffer(message.data()),
        [self = this->shared_from_this(), done = std::move(done)](Error error, std::size_t) {
          if (!self->closed_) done(!error);
        });
  }

  void close() override {
    closed_ = true;
    Error ignored;
    socket_.close(ignored);
  }

 protected:
  using Error = boost::system::error_code;

  Socket socket_;
  bool closed_ = false;

 private:
  std::array<char, 64 << 10> piece_;
};

}  // namespace det::agent
