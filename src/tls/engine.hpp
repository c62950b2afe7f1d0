// TLS engine: one end of a TLS connection, which never waits. Ciphertext is fed in as leases, and
// goes out to the stream below as far as that takes it at once. The driver sends the rest.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/stream.hpp>

#include "tls/context_state.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <system_error>

namespace eddy::tls {

class engine {
public:
    enum class status {
        done,
        want_input,  ///< all input is used up, and more is needed
        failed,      ///< error() has the reason; errc::end_of_stream is an orderly end
    };

    /// `below` and the engine itself must stay where they are. `server_name` is a client's.
    engine(context as, std::string server_name, stream& below);
    ~engine();
    engine(const engine&) = delete;
    engine& operator=(const engine&) = delete;

    /// False when there was no memory; nothing else may be called then.
    bool usable() const noexcept { return ssl_ != nullptr; }
    SSL* ssl() const noexcept { return ssl_.get(); }
    bool is_server() const noexcept { return context_.state().is_server(); }
    bool verifies() const noexcept { return context_.state().verifies(); }

    status handshake();
    /// Decrypts into `into`; `size` becomes the number of bytes.
    status read(mutable_bytes into, std::size_t& size);
    /// Processes input that is not for the user, such as session tickets; done when read() would
    /// yield bytes.
    status peek();
    /// Encrypts one record at most: `bytes` must not be more than max_record, nor empty. Never
    /// want_input.
    status write(const_bytes bytes);
    /// Signals the peer that no more bytes follow.
    void finish() noexcept;
    std::error_code error() const noexcept { return error_; }

    /// Received ciphertext. All earlier input must be used up.
    void feed(lease received) noexcept;
    /// True when read() may yield something without more input.
    bool has_input() const noexcept;
    void drop_input() noexcept {
        input_.reset();
        used_ = 0;
    }

    /// Ciphertext that the stream below did not take: at most one record, and answers to the input
    /// (a flight of the handshake, an alert, key updates).
    bool has_output() const noexcept { return !output_.empty(); }
    std::size_t output_size() const noexcept { return output_.size(); }
    byte_buffer take_output() noexcept;
    /// Keeps output here, since earlier output is still being sent.
    void hold_output(bool hold) noexcept { holding_ = hold; }
    /// The error of the stream below, if it refused output.
    std::error_code output_error() const noexcept { return output_error_; }

    static int on_new_session(SSL* ssl, SSL_SESSION* session) noexcept;

private:
    friend struct engine_bio;

    void begin_call() noexcept;
    status outcome_of(int returned, bool in_handshake) noexcept;
    bool prepare_client();

    context context_;
    std::string server_name_;
    stream& below_;
    owned_ssl ssl_;
    lease input_;
    std::size_t used_ = 0;  // of the input
    byte_buffer output_;
    std::error_code error_;
    std::error_code output_error_;
    bool starved_ = false;  // the call under way found no input
    bool holding_ = false;
};

}  // namespace eddy::tls
