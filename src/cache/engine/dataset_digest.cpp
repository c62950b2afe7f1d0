// Two ways to add to a digest: where the order matters, and by exclusive or where it does not.
#include "cache/engine/dataset_digest.hpp"

#include "cache/types/collection.hpp"
#include "cache/types/list.hpp"
#include "cache/types/sorted_set.hpp"

#include <bit>
#include <charconv>
#include <cstring>

namespace eddy::cache {
namespace {

std::uint32_t load_big_endian(const std::uint8_t* from) noexcept {
    std::uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word = word << 8 | from[i];
    return word;
}

void store_big_endian(std::uint8_t* to, std::uint64_t value, int bytes) noexcept {
    for (int i = 0; i < bytes; ++i) {
        to[i] = static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - i));
    }
}

void sha1_block(std::array<std::uint32_t, 5>& state, const std::uint8_t* block) noexcept {
    std::uint32_t words[80];
    for (int i = 0; i < 16; ++i) words[i] = load_big_endian(block + i * 4);
    for (int i = 16; i < 80; ++i) {
        words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    }
    auto [a, b, c, d, e] = state;
    for (int i = 0; i < 80; ++i) {
        std::uint32_t mixed;
        std::uint32_t constant;
        if (i < 20) {
            mixed = (b & c) | (~b & d);
            constant = 0x5a827999;
        } else if (i < 40) {
            mixed = b ^ c ^ d;
            constant = 0x6ed9eba1;
        } else if (i < 60) {
            mixed = (b & c) | (b & d) | (c & d);
            constant = 0x8f1bbcdc;
        } else {
            mixed = b ^ c ^ d;
            constant = 0xca62c1d6;
        }
        const std::uint32_t next = std::rotl(a, 5) + mixed + e + constant + words[i];
        e = d;
        d = c;
        c = std::rotl(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

std::string_view view_of(const digest& of) noexcept {
    return {reinterpret_cast<const char*>(of.data()), of.size()};
}

void add_unordered(digest& to, std::string_view bytes) {
    const digest its = sha1(bytes);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] ^= its[i];
}

void add_in_order(digest& to, std::string_view bytes) {
    add_unordered(to, bytes);
    to = sha1(view_of(to));
}

void add_number(digest& to, std::uint32_t number) {
    std::uint8_t bytes[4];
    store_big_endian(bytes, number, 4);
    add_in_order(to, {reinterpret_cast<const char*>(bytes), sizeof bytes});
}

void add_value(digest& to, environment& env, const entry& of) {
    // The collections' views do not change what they look at here.
    auto& e = const_cast<entry&>(of);
    switch (of.type) {
        case value_type::string: {
            add_number(to, 0);
            text_view view;
            add_in_order(to, view(of));
            break;
        }
        case value_type::list: {
            add_number(to, 1);
            const list& elements = *of.pointer<list>();
            for (list::position at = elements.first(); at; at = list::after(at)) {
                add_in_order(to, list::get(at));
            }
            break;
        }
        case value_type::set: {
            add_number(to, 2);
            collection::walk walk(collection(env, e));
            for (collection::element m; walk.next(m);) add_unordered(to, m.field);
            break;
        }
        case value_type::sorted_set: {
            add_number(to, 3);
            sorted_set::walk walk(sorted_set(env, e));
            for (sorted_set::element m; walk.next(m);) {
                char digits[32];
                const auto [end, failed] = std::to_chars(digits, digits + sizeof digits, m.score,
                                                         std::chars_format::general, 17);
                digest its{};
                add_in_order(its, m.member);
                add_in_order(its, {digits, static_cast<std::size_t>(end - digits)});
                add_unordered(to, view_of(its));
            }
            break;
        }
        case value_type::stream: {
            add_number(to, 6);
            stream::walk entries(*of.pointer<stream>(), {}, stream_id::max());
            while (entries.next()) {
                add_in_order(to, stream_id_text(entries.id(), '.').view());
                for (std::size_t i = entries.pairs(); i > 0; --i) {
                    listpack::element field;
                    listpack::element text;
                    char digits[24];
                    entries.pair(field, text);
                    add_in_order(to, field.text(digits));
                    add_in_order(to, text.text(digits));
                }
            }
            break;
        }
        case value_type::hash: {
            add_number(to, 4);
            collection::walk walk(collection(env, e));
            for (collection::element f; walk.next(f);) {
                digest its{};
                add_in_order(its, f.field);
                add_in_order(its, f.value);
                if (walk.ends_at() != no_expiry) add_unordered(its, "!!hexpire!!");
                add_unordered(to, view_of(its));
            }
            break;
        }
    }
    if (of.expiry() != no_expiry) add_unordered(to, "!!expire!!");
}

}  // namespace

void sha1_sum::add(std::string_view blocks) noexcept {
    const auto* const from = reinterpret_cast<const std::uint8_t*>(blocks.data());
    for (std::size_t at = 0; at < blocks.size(); at += block_bytes) sha1_block(state_, from + at);
    bytes_ += blocks.size();
}

digest sha1_sum::end(std::string_view rest) noexcept {
    const std::size_t whole = rest.size() / block_bytes * block_bytes;
    add(rest.substr(0, whole));
    rest.remove_prefix(whole);
    bytes_ += rest.size();
    // The rest, a one, zeros, and the size in bits.
    std::uint8_t last[2 * block_bytes] = {};
    if (!rest.empty()) std::memcpy(last, rest.data(), rest.size());
    last[rest.size()] = 0x80;
    const std::size_t padded = rest.size() < block_bytes - 8 ? block_bytes : 2 * block_bytes;
    store_big_endian(last + padded - 8, bytes_ * 8, 8);
    for (std::size_t at = 0; at < padded; at += block_bytes) sha1_block(state_, last + at);
    digest made;
    for (std::size_t i = 0; i < state_.size(); ++i) {
        store_big_endian(made.data() + i * 4, state_[i], 4);
    }
    return made;
}

digest sha1(std::string_view bytes) { return sha1_sum().end(bytes); }

digest value_digest(environment& env, const entry& of) {
    digest made{};
    add_value(made, env, of);
    return made;
}

digest dataset_digest(engine::state& of) {
    digest all{};
    for (std::uint32_t number = 0; number < engine::databases; ++number) {
        const keyspace* const keys = of.keyspaces[number].get();
        if (keys == nullptr || keys->size() == 0) continue;
        add_number(all, number);
        dictionary::iterator entries(keys->table());
        while (const dictionary::slot* const place = entries.next()) {
            const entry& e = *keyspace::at(place);
            digest its{};
            add_in_order(its, e.key());
            add_value(its, of.env, e);
            add_unordered(all, view_of(its));
        }
    }
    return all;
}

std::string hexadecimal(const digest& of) {
    std::string text;
    for (const std::uint8_t byte : of) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

}  // namespace eddy::cache
