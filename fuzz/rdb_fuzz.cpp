// Fuzz target of the reader of RDB, with any bytes of a file, a master or a RESTORE: it neither
// crashes nor allocates memory for a claimed size alone, emits the same events in whatever pieces
// the bytes come, and a loaded dataset can be saved and loaded again.
//
// The first byte chooses: a file or a RESTORE, of Redis or of Valkey, and where the input is split.
// Checksums are neither checked nor made, since no fuzzer would find one.
#include <eddy/base/assert.hpp>

#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/rdb/crc64.hpp"
#include "cache/rdb/load.hpp"
#include "cache/rdb/save.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace eddy;
using namespace eddy::cache;

// Small, or a few bytes could become half a gigabyte.
constexpr std::size_t max_text = 1 << 20;

// Sum of all events.
class summing : public rdb::consumer {
public:
    std::uint64_t sum = 0;

    rdb::refusal aux(std::string_view a, std::string_view b) override { return add('a', a, b); }
    rdb::refusal select(std::uint64_t n) override { return add('s', std::to_string(n)); }
    rdb::refusal library(std::string_view a) override { return add('l', a); }
    rdb::refusal begin(const rdb::key_header& of) override {
        return add('k', of.key, std::to_string(of.expires ? of.expires_at_ms : 0));
    }
    rdb::refusal text(std::string_view a) override { return add('t', a); }
    rdb::refusal element(std::string_view a) override { return add('e', a); }
    rdb::refusal member(std::string_view a) override { return add('m', a); }
    rdb::refusal scored(std::string_view a, double b) override {
        return add('z', a, std::to_string(b));
    }
    rdb::refusal field(std::string_view a, std::string_view b) override { return add('f', a, b); }
    rdb::refusal timed_field(std::string_view a, std::string_view b, std::int64_t at) override {
        add('x', std::to_string(at));
        return add('f', a, b);
    }
    rdb::refusal stream_block(stream_id id, std::string_view a) override {
        return add('b', stream_id_text(id).view(), a);
    }
    rdb::refusal stream_facts(const redis_stream::facts& of) override {
        const stream_id added{of.length, of.entries_added.value_or(1)};
        add('i', stream_id_text(of.last_id).view(), stream_id_text(added).view());
        return add('i', stream_id_text(of.max_deleted_id).view());
    }
    rdb::refusal group(std::string_view a, stream_id id,
                       std::optional<std::int64_t> read) override {
        add('g', a, stream_id_text(id).view());
        return add('g', std::to_string(read.value_or(1)));
    }
    rdb::refusal pending(stream_id id, std::int64_t at, std::uint64_t times) override {
        return add('p', stream_id_text(id).view(), std::to_string(at) + std::to_string(times));
    }
    rdb::refusal group_consumer(std::string_view a, std::int64_t seen,
                                std::int64_t active) override {
        return add('c', a, std::to_string(seen) + std::to_string(active));
    }
    rdb::refusal owned(stream_id id) override { return add('o', stream_id_text(id).view()); }
    rdb::refusal end() override { return add('.', {}); }

private:
    rdb::refusal add(char what, std::string_view a, std::string_view b = {}) {
        sum = rdb::crc64(sum, {&what, 1});
        sum = rdb::crc64(sum, a);
        sum = rdb::crc64(sum + a.size(), b);
        return rdb::accepted;
    }
};

struct outcome {
    rdb::reader::status now;
    std::uint64_t offset;
    std::string fault;  // it may be the reader's text
    std::uint64_t sum;
    bool operator==(const outcome&) const = default;
};

outcome read(std::string_view input, rdb::reader::input what, rdb::format_family family,
             std::size_t piece) {
    summing told;
    rdb::reader reader(told, what, {.max_text = max_text, .check_sum = false, .family = family});
    while (!input.empty() && reader.now() == rdb::reader::status::reading) {
        // A copy of its own, so that the sanitizer sees each view that is kept too long.
        const std::string now(input.substr(0, piece));
        input.remove_prefix(reader.feed(now));
    }
    reader.finish();
    const char* const fault = reader.fault().what;
    return {reader.now(), reader.fault().offset, fault != nullptr ? fault : "", told.sum};
}

engine_options small_options() {
    engine_options options;
    options.seed = 1;
    options.max_text = max_text;
    return options;
}

void load_and_save(std::string_view file, rdb::file_form form) {
    constexpr rdb::load_options loading{.reading = {.max_text = max_text, .check_sum = false},
                                        .keep_expired = true};
    engine first(small_options());
    rdb::loader loader(first, loading);
    loader.feed(file);
    loader.finish();
    rdb::saver saver(first, form);
    engine second(small_options());
    rdb::loader again(second, {.keep_expired = true});
    for (bool more = true; more;) {
        byte_buffer piece;
        more = saver.next(piece, 100);
        again.feed(piece.text());
    }
    EDDY_ASSERT(again.now() == rdb::reader::status::done);
    EDDY_ASSERT(again.counts().keys == first.stats().keys);
    EDDY_ASSERT(second.stats().keys == first.stats().keys);
}

// Whatever is in it, a stream can be read, written, trimmed and emptied.
template <class Ask>
void use_stream(engine& home, Ask&& ask) {
    const auto& keys = home.internals().data.database(0);
    const redis_stream& entries = *keys.look_at("a")->template pointer<redis_stream>();
    entries.check();
    ask({"XINFO", "STREAM", "a", "FULL", "COUNT", "0"});
    ask({"XGROUP", "CREATE", "a", "fuzz", "0"});
    ask({"XREADGROUP", "GROUP", "fuzz", "c", "COUNT", "2", "STREAMS", "a", ">"});
    ask({"XADD", "a", "*", "f", "v"});
    ask({"XREVRANGE", "a", "+", "-"});
    ask({"XAUTOCLAIM", "a", "fuzz", "d", "0", "0"});
    entries.check();
    ask({"XTRIM", "a", "MAXLEN", "1"});
    entries.check();
    ask({"XTRIM", "a", "MINID", "18446744073709551615"});
    entries.check();
}

void restore(std::string_view value, rdb::format_family family) {
    engine home(small_options());
    client_session client(home);
    home.set_time(std::chrono::seconds(1'700'000'000));
    std::string payload(value);
    payload.append(family == rdb::format_family::valkey ? "\x50" : "\x0d");
    payload.push_back('\0');
    const std::uint64_t sum = rdb::crc64(0, payload);
    payload.append(reinterpret_cast<const char*>(&sum), sizeof sum);
    byte_buffer out;
    const auto ask = [&](std::initializer_list<std::string_view> args) {
        out.clear();
        const resp::command one{args.begin(), args.size()};
        static_cast<void>(home.execute(client, {&one, 1}, out));
        return out.text();
    };
    if (ask({"RESTORE", "a", "0", payload}) != "+OK\r\n") {
        EDDY_ASSERT(out.text() == "-ERR Bad data format\r\n");
        EDDY_ASSERT(ask({"EXISTS", "a"}) == ":0\r\n");
        return;
    }
    std::string dump(ask({"DUMP", "a"}));
    dump.erase(0, dump.find('\n') + 1);
    dump.resize(dump.size() - 2);
    EDDY_ASSERT(ask({"RESTORE", "b", "0", dump}) == "+OK\r\n");
    if (ask({"TYPE", "a"}) == "+stream\r\n") use_stream(home, ask);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::uint8_t choice = data[0];
    const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::size_t piece = choice / 2 + 1U;
    const bool is_file = choice % 2 == 0;
    const bool is_valkeys = choice >= 128;
    const auto family = is_valkeys ? rdb::format_family::valkey : rdb::format_family::redis;
    const auto what = is_file ? rdb::reader::input::file : rdb::reader::input::value;
    EDDY_ASSERT(read(input, what, family, piece) == read(input, what, family, input.size()));
    if (is_file) {
        load_and_save(input, is_valkeys ? rdb::file_form::valkey_rdb : rdb::file_form::rdb);
    } else {
        restore(input, family);
    }
    return 0;
}
