// ClientHello parser: the server name and the protocols that a TLS client asks for, read from the
// first bytes of its connection without a part in the handshake (RFC 8446, 4.1.2; RFC 6066, 3; RFC
// 7301). A client that encrypts its hello (ECH, RFC 9849) shows the name of its outer one.
#pragma once

#include <eddy/base/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

/// The first message of a TLS client without I/O. Values, for any thread.
namespace eddy::client_hello {

/// Most bytes of a connection up to the end of its ClientHello, with the heads of its records.
/// Those of browsers have up to 2 KiB; long session tickets come on top.
inline constexpr std::size_t max_bytes = std::size_t{16} * 1024;

/// Names that a client asks for.
struct contents {
    std::string server_name;        ///< in lower case, without a dot at its end; empty: none
    std::vector<std::string> alpn;  ///< protocols in the client's order; empty: none

    friend bool operator==(const contents&, const contents&) = default;
};

/// Reads one ClientHello that arrives in pieces, in any number of TLS records; the result does not
/// depend on how it was cut. One thread.
class parser {
public:
    /// Takes bytes of the connection, from the first one on. True once the hello is complete; what
    /// is behind it in `piece` is not read. Not after that.
    ///
    /// errc::unsupported as soon as the bytes are no ClientHello of TLS 1.0 to 1.3, such as those
    /// of another protocol; errc::malformed for one that a server would refuse for its form;
    /// errc::limit_reached beyond max_bytes. Errors are final.
    [[nodiscard]] result<bool> feed(std::string_view piece);

    /// Names of a complete hello.
    const contents& found() const noexcept { return found_; }

private:
    result<bool> read(std::string_view piece);
    result<> take_head_byte(char byte);
    result<> check_message() const;
    bool has_whole_message() const noexcept;
    result<> read_message();
    result<> read_extensions(std::string_view all);

    std::array<unsigned char, 5> head_{};  // of the record
    std::size_t head_size_ = 0;            // bytes of it that have come
    std::size_t record_left_ = 0;          // bytes of the record's fragment that have not come
    std::size_t taken_ = 0;
    std::string message_;  // of the handshake
    std::error_code failure_;
    contents found_;
};

}  // namespace eddy::client_hello
