// Grammar of extensions (RFC 6455, 9.1), and terms of permessage-deflate (RFC 7692, 7.1).
#include "wire/websocket/extensions.hpp"

#include "wire/http1/text.hpp"

#include <algorithm>

namespace eddy::websocket {
namespace {

constexpr std::string_view server_no_context_takeover = "server_no_context_takeover";
constexpr std::string_view client_no_context_takeover = "client_no_context_takeover";
constexpr std::string_view server_max_window_bits = "server_max_window_bits";
constexpr std::string_view client_max_window_bits = "client_max_window_bits";

/// "8" to "15", without leading zeros.
std::optional<unsigned> window_bits_of(std::string_view text) noexcept {
    if (text.empty() || text.size() > 2 || text[0] == '0') return std::nullopt;
    unsigned bits = 0;
    for (const char c : text) {
        if (!http1::is_digit(c)) return std::nullopt;
        bits = bits * 10 + static_cast<unsigned>(c - '0');
    }
    if (bits < least_window_bits || bits > most_window_bits) return std::nullopt;
    return bits;
}

void append_parameter(std::string& to, std::string_view name) { to.append("; ").append(name); }

void append_parameter(std::string& to, std::string_view name, unsigned value) {
    append_parameter(to, name);
    to.append("=").append(std::to_string(value));
}

}  // namespace

void extension_reader::skip_blanks() noexcept {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t'))
        rest_.remove_prefix(1);
}

bool extension_reader::take(char c) noexcept {
    skip_blanks();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
}

std::string_view extension_reader::take_token() noexcept {
    skip_blanks();
    std::size_t size = 0;
    while (size < rest_.size() && http1::is_token(rest_.substr(size, 1))) ++size;
    const std::string_view token = rest_.substr(0, size);
    rest_.remove_prefix(size);
    if (size == 0) is_malformed_ = true;
    return token;
}

// Behind the opening quote. What is quoted must be a token, too.
bool extension_reader::take_quoted(std::string& value) {
    while (!rest_.empty()) {
        char c = rest_.front();
        rest_.remove_prefix(1);
        if (c == '"') return http1::is_token(value);
        if (c == '\\') {
            if (rest_.empty()) return false;
            c = rest_.front();
            rest_.remove_prefix(1);
        }
        value += c;
    }
    return false;
}

std::string_view extension_reader::next_extension() noexcept {
    if (is_malformed_) return {};
    // Empty items of a list are passed over (RFC 9110, 5.6.1).
    while (take(',')) {
    }
    if (rest_.empty()) return {};
    return take_token();
}

extension_reader::parameter extension_reader::next_parameter() {
    skip_blanks();
    if (is_malformed_ || rest_.empty() || rest_.front() == ',') return {};
    if (!take(';')) {
        is_malformed_ = true;
        return {};
    }
    parameter found;
    found.name = take_token();
    if (is_malformed_ || !take('=')) return found;
    if (take('"')) {
        found.value.emplace();
        if (!take_quoted(*found.value)) is_malformed_ = true;
    } else {
        found.value = take_token();
    }
    if (is_malformed_) return {};
    return found;
}

deflate_parameters read_deflate(extension_reader& reader) {
    deflate_parameters found;
    bool has_server_bits = false;
    for (;;) {
        const extension_reader::parameter each = reader.next_parameter();
        if (each.name.empty()) return found;
        bool* seen = nullptr;
        if (each.name == server_no_context_takeover) {
            seen = &found.has_server_no_context_takeover;
            found.is_valid &= !each.value;
        } else if (each.name == client_no_context_takeover) {
            seen = &found.has_client_no_context_takeover;
            found.is_valid &= !each.value;
        } else if (each.name == server_max_window_bits) {
            seen = &has_server_bits;
            found.server_max_window_bits = window_bits_of(each.value.value_or(std::string()));
            found.is_valid &= found.server_max_window_bits.has_value();
        } else if (each.name == client_max_window_bits) {
            // An offer may have it without a value.
            seen = &found.has_client_max_window_bits;
            if (each.value) {
                found.client_max_window_bits = window_bits_of(*each.value);
                found.is_valid &= found.client_max_window_bits.has_value();
            }
        }
        if (seen == nullptr || *seen)
            found.is_valid = false;
        else
            *seen = true;
    }
}

std::optional<deflate_terms> accept_deflate(const deflate_parameters& offer,
                                            const deflate_policy& policy, std::string& answer) {
    if (!offer.is_valid) return std::nullopt;
    // Only a client that offers it knows the parameter.
    if (policy.peer_window_bits < most_window_bits && !offer.has_client_max_window_bits)
        return std::nullopt;
    deflate_terms terms;
    terms.server_no_context_takeover =
        offer.has_server_no_context_takeover || policy.resets_own_context;
    terms.client_no_context_takeover =
        offer.has_client_no_context_takeover || policy.resets_peer_context;
    terms.server_max_window_bits =
        std::min(policy.own_window_bits, offer.server_max_window_bits.value_or(most_window_bits));
    terms.client_max_window_bits =
        std::min(policy.peer_window_bits, offer.client_max_window_bits.value_or(most_window_bits));

    answer = deflate_name;
    if (terms.server_no_context_takeover) append_parameter(answer, server_no_context_takeover);
    if (terms.client_no_context_takeover) append_parameter(answer, client_no_context_takeover);
    if (offer.server_max_window_bits || terms.server_max_window_bits < most_window_bits)
        append_parameter(answer, server_max_window_bits, terms.server_max_window_bits);
    if (terms.client_max_window_bits < most_window_bits)
        append_parameter(answer, client_max_window_bits, terms.client_max_window_bits);
    return terms;
}

std::string offer_deflate(const deflate_policy& policy) {
    std::string offer(deflate_name);
    if (policy.resets_peer_context) append_parameter(offer, server_no_context_takeover);
    if (policy.resets_own_context) append_parameter(offer, client_no_context_takeover);
    if (policy.peer_window_bits < most_window_bits)
        append_parameter(offer, server_max_window_bits, policy.peer_window_bits);
    if (policy.own_window_bits < most_window_bits)
        append_parameter(offer, client_max_window_bits, policy.own_window_bits);
    else
        append_parameter(offer, client_max_window_bits);
    return offer;
}

std::optional<deflate_terms> confirm_deflate(const deflate_parameters& answer,
                                             const deflate_policy& policy) {
    if (!answer.is_valid) return std::nullopt;
    if (answer.has_client_max_window_bits && !answer.client_max_window_bits) return std::nullopt;
    if (policy.resets_peer_context && !answer.has_server_no_context_takeover) return std::nullopt;
    deflate_terms terms;
    terms.server_no_context_takeover = answer.has_server_no_context_takeover;
    terms.client_no_context_takeover =
        answer.has_client_no_context_takeover || policy.resets_own_context;
    terms.server_max_window_bits = answer.server_max_window_bits.value_or(most_window_bits);
    terms.client_max_window_bits =
        std::min(policy.own_window_bits, answer.client_max_window_bits.value_or(most_window_bits));
    if (terms.server_max_window_bits > policy.peer_window_bits) return std::nullopt;
    // A server may lower what was offered, not raise it.
    if (answer.client_max_window_bits.value_or(least_window_bits) > policy.own_window_bits)
        return std::nullopt;
    return terms;
}

}  // namespace eddy::websocket
