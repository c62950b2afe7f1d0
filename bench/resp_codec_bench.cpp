// Cost of parsing a command, and of writing or counting a reply. `items_per_second` is commands or
// replies, and its inverse is the figure to quote.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/resp.hpp>

#include <benchmark/benchmark.h>

#include <string>
#include <vector>

namespace {

using namespace eddy;

constexpr std::size_t pipeline = 100;

std::string pipeline_of(std::vector<std::string> args, std::size_t digits_in_key) {
    byte_buffer out;
    for (std::size_t i = 0; i < pipeline; ++i) {
        if (digits_in_key > 0) {
            std::string number = std::to_string(i * 7919 % 1000);
            args[1] = "key:" + std::string(digits_in_key - number.size(), '0') + number;
        }
        const std::vector<std::string_view> views(args.begin(), args.end());
        resp::write_command(out, views);
    }
    return std::string(out.text());
}

void parse_batches(benchmark::State& state, const std::string& input) {
    resp::request_parser parser;
    resp::request_batch batch;
    for (auto _ : state) {
        const resp::batch_outcome outcome = batch.parse(parser, input);
        if (outcome.commands.size() != pipeline) state.SkipWithError("wrong number of commands");
        benchmark::DoNotOptimize(outcome.commands.data());
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(pipeline));
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(input.size()));
}

void parse_ping(benchmark::State& state) { parse_batches(state, pipeline_of({"PING"}, 0)); }
void parse_get(benchmark::State& state) { parse_batches(state, pipeline_of({"GET", ""}, 12)); }
void parse_set(benchmark::State& state) {
    parse_batches(state, pipeline_of({"SET", "", std::string(32, 'v')}, 12));
}
void parse_set_short(benchmark::State& state) {
    parse_batches(state, pipeline_of({"SET", "k", "v"}, 0));
}
void parse_set_1000(benchmark::State& state) {
    parse_batches(state, pipeline_of({"SET", "", std::string(1000, 'v')}, 12));
}
void parse_mset(benchmark::State& state) {
    parse_batches(state, pipeline_of({"MSET", "", "v1", "key:2", "v2", "key:3", "v3"}, 12));
}

void parse_one(benchmark::State& state) {
    byte_buffer out;
    const std::string_view args[] = {"SET", "key:000000000001", "a value of some bytes"};
    resp::write_command(out, args);
    resp::request_parser parser;
    for (auto _ : state) {
        resp::request_outcome outcome = parser.next(out.text());
        benchmark::DoNotOptimize(outcome.request.argc);
    }
    state.SetItemsProcessed(state.iterations());
}

void parse_inline(benchmark::State& state) {
    resp::request_parser parser;
    for (auto _ : state) {
        resp::request_outcome outcome = parser.next("SET key:000000000001 value\r\n");
        benchmark::DoNotOptimize(outcome.request.argc);
    }
    state.SetItemsProcessed(state.iterations());
}

template <class Write>
void write_replies(benchmark::State& state, Write write) {
    byte_buffer out;
    for (auto _ : state) {
        out.clear();
        resp::reply_writer writer(out);
        for (std::size_t i = 0; i < pipeline; ++i) write(writer, i);
        benchmark::DoNotOptimize(out.text().data());
        benchmark::ClobberMemory();
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(pipeline));
}

void write_ok(benchmark::State& state) {
    write_replies(state, [](resp::reply_writer& writer, std::size_t) { writer.simple("OK"); });
}
void write_integer(benchmark::State& state) {
    write_replies(state, [](resp::reply_writer& writer, std::size_t i) {
        writer.integer(static_cast<std::int64_t>(i * 1000));
    });
}
void write_bulk(benchmark::State& state) {
    std::string value(static_cast<std::size_t>(state.range(0)), 'v');
    write_replies(state, [&](resp::reply_writer& writer, std::size_t) {
        benchmark::DoNotOptimize(value.data());
        writer.bulk(value);
    });
}
void write_bulk_integer(benchmark::State& state) {
    write_replies(state, [](resp::reply_writer& writer, std::size_t i) {
        writer.bulk_integer(static_cast<std::int64_t>(i * 1000));
    });
}

void count_replies(benchmark::State& state, std::string_view reply) {
    std::string stream;
    for (std::size_t i = 0; i < pipeline; ++i) stream += reply;
    resp::reply_counter counter;
    for (auto _ : state) {
        if (counter.count(stream) != pipeline) state.SkipWithError("wrong number of replies");
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(pipeline));
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(stream.size()));
}

void parse_replies(benchmark::State& state, std::string_view reply) {
    std::string stream;
    for (std::size_t i = 0; i < pipeline; ++i) stream += reply;
    resp::reply_parser parser;
    for (auto _ : state) {
        for (std::string_view rest = stream; !rest.empty();) {
            const resp::reply_outcome outcome = parser.next(rest);
            if (outcome.status != resp::parse_status::complete) {
                state.SkipWithError("a reply was refused");
                break;
            }
            rest.remove_prefix(outcome.consumed);
        }
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(pipeline));
}

BENCHMARK(parse_ping);
BENCHMARK(parse_get);
BENCHMARK(parse_set_short);
BENCHMARK(parse_set);
BENCHMARK(parse_set_1000);
BENCHMARK(parse_mset);
BENCHMARK(parse_one);
BENCHMARK(parse_inline);
BENCHMARK(write_ok);
BENCHMARK(write_integer);
BENCHMARK(write_bulk)->Arg(3)->Arg(32)->Arg(200);
BENCHMARK(write_bulk_integer);
BENCHMARK_CAPTURE(count_replies, ok, "+OK\r\n");
BENCHMARK_CAPTURE(count_replies, integer, ":1000\r\n");
BENCHMARK_CAPTURE(count_replies, null, "$-1\r\n");
BENCHMARK_CAPTURE(count_replies, bulk_3, "$3\r\nxxx\r\n");
BENCHMARK_CAPTURE(count_replies, bulk_32, "$32\r\n0123456789abcdef0123456789abcdef\r\n");
BENCHMARK_CAPTURE(count_replies, array, "*2\r\n$3\r\nabc\r\n:7\r\n");
BENCHMARK_CAPTURE(parse_replies, ok, "+OK\r\n");
BENCHMARK_CAPTURE(parse_replies, bulk_32, "$32\r\n0123456789abcdef0123456789abcdef\r\n");

}  // namespace

BENCHMARK_MAIN();
