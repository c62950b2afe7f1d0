// Records of TLS, the ClientHello in them, and two of its extensions.
#include "wire/client_hello/parser.hpp"

#include <eddy/base/assert.hpp>

#include "wire/http1/text.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace eddy::client_hello {
namespace {

constexpr unsigned char handshake_record = 22;
constexpr unsigned char hello_message = 1;
constexpr std::size_t message_head = 4;
/// Most bytes in a record without encryption (RFC 8446, 5.1).
constexpr std::size_t max_fragment = std::size_t{1} << 14;
constexpr std::size_t random_bytes = 32;
constexpr std::size_t max_session_id = 32;

constexpr std::uint16_t server_name_extension = 0;
constexpr std::uint16_t alpn_extension = 16;
constexpr std::uint8_t host_name = 0;
/// Longest name of a host (RFC 1035, 2.3.4).
constexpr std::size_t max_host_name = 255;

std::size_t number(std::string_view bytes) noexcept {
    std::size_t made = 0;
    EDDY_ASSERT(bytes.size() <= sizeof(made));
    for (const char byte : bytes) made = made << 8U | static_cast<unsigned char>(byte);
    return made;
}

/// Takes fields from the front of bytes; after one that is not there every other one fails, too.
class reader {
public:
    explicit reader(std::string_view bytes) noexcept : rest_(bytes) {}

    std::string_view take(std::size_t size) noexcept {
        if (size > rest_.size()) {
            has_failed_ = true;
            rest_ = {};
            return {};
        }
        const std::string_view taken = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return taken;
    }
    std::size_t take_number(std::size_t size) noexcept { return number(take(size)); }
    /// Bytes behind their length, which has `size` bytes.
    std::string_view take_vector(std::size_t size) noexcept { return take(take_number(size)); }

    bool at_end() const noexcept { return rest_.empty(); }
    bool has_failed() const noexcept { return has_failed_; }

private:
    std::string_view rest_;
    bool has_failed_ = false;
};

/// A name as the field Host would have it: of visible ASCII, so that it can be logged and compared.
bool is_host(std::string_view name) noexcept {
    return !name.empty() && name.size() <= max_host_name &&
           std::ranges::all_of(name, [](char c) { return c > ' ' && c < '\x7f'; });
}

/// The list of server names has one of a host, in practice; other types are skipped.
result<std::string> read_server_name(std::string_view extension) {
    reader whole(extension);
    reader names(whole.take_vector(2));
    if (whole.has_failed() || !whole.at_end() || names.at_end()) return fail(errc::malformed);
    std::optional<std::string> found;
    while (!names.at_end()) {
        const std::size_t type = names.take_number(1);
        std::string_view name = names.take_vector(2);
        if (names.has_failed()) return fail(errc::malformed);
        if (type != host_name) continue;
        if (found || !is_host(name)) return fail(errc::malformed);
        if (name.ends_with('.')) name.remove_suffix(1);
        found.emplace(name);
        std::ranges::transform(*found, found->begin(), http1::to_lower);
    }
    return found.value_or("");
}

result<std::vector<std::string>> read_protocols(std::string_view extension) {
    reader whole(extension);
    reader names(whole.take_vector(2));
    if (whole.has_failed() || !whole.at_end() || names.at_end()) return fail(errc::malformed);
    std::vector<std::string> found;
    while (!names.at_end()) {
        const std::string_view name = names.take_vector(1);
        if (names.has_failed() || name.empty()) return fail(errc::malformed);
        found.emplace_back(name);
    }
    return found;
}

}  // namespace

result<bool> parser::feed(std::string_view piece) {
    if (failure_) return fail(failure_);
    EDDY_PRECONDITION(!has_whole_message(), "feed() of a ClientHello that is complete");
    auto done = read(piece);
    if (!done) {
        failure_ = done.error();
        found_ = {};
    }
    return done;
}

result<bool> parser::read(std::string_view piece) {
    while (!piece.empty()) {
        if (taken_ == max_bytes) return fail(errc::limit_reached);
        if (record_left_ == 0) {
            ++taken_;
            if (auto fine = take_head_byte(piece.front()); !fine) return fail(fine.error());
            piece.remove_prefix(1);
            continue;
        }
        // The message's own head decides how much of it is awaited.
        const std::size_t most =
            message_.size() < message_head
                ? 1
                : message_head + number(std::string_view(message_).substr(1, 3)) - message_.size();
        const std::size_t size = std::min({piece.size(), record_left_, most, max_bytes - taken_});
        EDDY_ASSERT(size > 0);
        message_.append(piece.substr(0, size));
        piece.remove_prefix(size);
        record_left_ -= size;
        taken_ += size;
        if (auto fine = check_message(); !fine) return fail(fine.error());
        if (!has_whole_message()) continue;
        if (auto fine = read_message(); !fine) return fail(fine.error());
        return true;
    }
    return false;
}

/// Byte of a record's head: its type, its version, which is 3.x in all versions of TLS, and its
/// length.
result<> parser::take_head_byte(char byte) {
    head_.at(head_size_++) = static_cast<unsigned char>(byte);
    const bool is_first = message_.empty();
    if (head_size_ == 1 && head_[0] != handshake_record)
        return fail(is_first ? errc::unsupported : errc::malformed);
    if (head_size_ == 2 && head_[1] != 3)
        return fail(is_first ? errc::unsupported : errc::malformed);
    if (head_size_ < head_.size()) return {};
    head_size_ = 0;
    record_left_ = std::size_t{head_[3]} << 8U | head_[4];
    if (record_left_ == 0 || record_left_ > max_fragment) return fail(errc::malformed);
    return {};
}

/// As far as the message has come.
result<> parser::check_message() const {
    if (message_.front() != static_cast<char>(hello_message)) return fail(errc::unsupported);
    if (message_.size() < message_head) return {};
    const std::size_t size = number(std::string_view(message_).substr(1, 3));
    if (size > max_bytes) return fail(errc::limit_reached);
    return {};
}

bool parser::has_whole_message() const noexcept {
    return message_.size() >= message_head &&
           message_.size() == message_head + number(std::string_view(message_).substr(1, 3));
}

result<> parser::read_message() {
    reader hello(std::string_view(message_).substr(message_head));
    hello.take(2);  // the version, which TLS 1.3 has in an extension
    hello.take(random_bytes);
    const std::string_view session_id = hello.take_vector(1);
    const std::string_view ciphers = hello.take_vector(2);
    const std::string_view compressions = hello.take_vector(1);
    const bool is_fine = !hello.has_failed() && session_id.size() <= max_session_id &&
                         !ciphers.empty() && ciphers.size() % 2 == 0 && !compressions.empty();
    if (!is_fine) return fail(errc::malformed);
    if (hello.at_end()) return {};  // TLS 1.2 and before: without extensions
    const std::string_view extensions = hello.take_vector(2);
    if (hello.has_failed() || !hello.at_end()) return fail(errc::malformed);
    return read_extensions(extensions);
}

/// Unknown extensions are skipped, also invented ones (GREASE, RFC 8701).
result<> parser::read_extensions(std::string_view all) {
    reader rest(all);
    bool has_name = false;
    bool has_protocols = false;
    while (!rest.at_end()) {
        const std::size_t type = rest.take_number(2);
        const std::string_view content = rest.take_vector(2);
        if (rest.has_failed()) return fail(errc::malformed);
        if (type == server_name_extension) {
            auto name = read_server_name(content);
            if (!name || std::exchange(has_name, true)) return fail(errc::malformed);
            found_.server_name = std::move(*name);
        } else if (type == alpn_extension) {
            auto protocols = read_protocols(content);
            if (!protocols || std::exchange(has_protocols, true)) return fail(errc::malformed);
            found_.alpn = std::move(*protocols);
        }
    }
    return {};
}

}  // namespace eddy::client_hello
