// Two ways to add to a digest: dependent on order, and independent of it by exclusive or.
#include "cache/engine/dataset_digest.hpp"

#include "cache/types/collection.hpp"
#include "cache/types/list.hpp"
#include "cache/types/sorted_sets/sorted_set.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::cache {
namespace {

std::string_view view_of(const sha1_digest& of) noexcept {
    return {reinterpret_cast<const char*>(of.data()), of.size()};
}

void add_unordered(sha1_digest& to, std::string_view bytes) {
    const sha1_digest its = sha1(bytes);
    for (std::size_t i = 0; i < to.size(); ++i) to[i] ^= its[i];
}

void add_in_order(sha1_digest& to, std::string_view bytes) {
    add_unordered(to, bytes);
    to = sha1(view_of(to));
}

void add_number(sha1_digest& to, std::uint32_t number) {
    char bytes[4];  // the highest first
    for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(number >> 8 * (3 - i));
    add_in_order(to, {bytes, sizeof bytes});
}

void add_value(sha1_digest& to, environment& env, const entry& of) {
    // The collections' views do not modify the entry here.
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
                sha1_digest its{};
                add_in_order(its, m.member);
                add_in_order(its, {digits, static_cast<std::size_t>(end - digits)});
                add_unordered(to, view_of(its));
            }
            break;
        }
        case value_type::stream: {
            add_number(to, 6);
            redis_stream::walk entries(*of.pointer<redis_stream>(), {}, stream_id::max());
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
                sha1_digest its{};
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

sha1_digest value_digest(environment& env, const entry& of) {
    sha1_digest made{};
    add_value(made, env, of);
    return made;
}

sha1_digest dataset_digest(dataset& of) {
    sha1_digest all{};
    for (std::uint32_t number = 0; number < engine_databases; ++number) {
        const keyspace* const keys = of.keyspaces[number].get();
        if (keys == nullptr || keys->size() == 0) continue;
        add_number(all, number);
        dictionary::iterator entries(keys->table());
        while (const dictionary::slot* const place = entries.next()) {
            const entry& e = *keyspace::at(place);
            sha1_digest its{};
            add_in_order(its, e.key());
            add_value(its, of.env, e);
            add_unordered(all, view_of(its));
        }
    }
    return all;
}

}  // namespace eddy::cache
