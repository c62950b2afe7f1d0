// Throughput of several threads on one cache inside the process: parsed, executed, replied; no
// socket.
//
//   cache_lanes [threads] [keys] [batch] [rounds]      default: 2 1000000 100 5
//
// Each thread has a core and pipelines of its own, encoded in advance, for keys at random among
// the same ones. *alone* is engine::execute() on one thread, the others are lanes. Each line is one
// row: operations a second of all threads together, the median of the rounds, in which the sides
// take turns; against *alone*; and the part of the commands that lanes left to be done alone.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/random.hpp>
#include <eddy/wire/resp/reply_writer.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/engine/engine.hpp"
#include "cache/engine/lane.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using eddy::byte_buffer;
using arguments = std::vector<std::string>;

constexpr std::size_t commands_a_thread = 2'000'000;

std::string key(std::size_t i) {
    char text[32];
    std::snprintf(text, sizeof text, "key:%012zu", i);
    return text;
}

std::vector<std::string> encode(std::string_view name, std::size_t keys, std::size_t batch,
                                std::uint64_t seed) {
    eddy::random_generator random(seed);
    const std::string value(32, 'v');
    std::vector<std::string> made;
    byte_buffer out;
    for (std::size_t i = 0; i < commands_a_thread; ++i) {
        const std::string which = key(random.below(keys));
        std::vector<std::string_view> args{name, which};
        if (name == "SET") args.emplace_back(value);
        eddy::resp::write_command(out, args);
        if ((i + 1) % batch == 0) {
            made.emplace_back(out.text());
            out.clear();
        }
    }
    return made;
}

// One client of a thread.
struct client {
    explicit client(eddy::cache::engine& of) : engine(of), session(of) {}

    // Returns how many commands were left to be done alone.
    std::size_t run(const std::vector<std::string>& pipelines, eddy::cache::lane* by) {
        std::size_t left = 0;
        for (std::string_view input : pipelines) {
            while (!input.empty()) {
                const auto parsed = batch.parse(parser, input);
                std::size_t done = 0;
                if (by != nullptr) {
                    done = by->execute(session, parsed.commands, out).executed;
                    left += parsed.commands.size() - done;
                } else {
                    engine.execute(session, parsed.commands, out);
                }
                input.remove_prefix(parsed.consumed);
            }
            out.clear();
        }
        return left;
    }

    eddy::cache::engine& engine;
    eddy::cache::client_session session;
    eddy::resp::request_parser parser;
    eddy::resp::request_batch batch;
    byte_buffer out;
};

void pin_to(std::size_t core) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(core % std::max(std::thread::hardware_concurrency(), 1U), &only);
    ::sched_setaffinity(0, sizeof only, &only);
}

double median(std::vector<double> of) {
    std::ranges::sort(of);
    return of[of.size() / 2];
}

// Operations a second of so many lanes, or of one thread alone for 0.
double measure(eddy::cache::engine& engine, std::size_t lanes,
               const std::vector<std::vector<std::string>>& pipelines, std::size_t& left) {
    const std::size_t threads = std::max<std::size_t>(lanes, 1);
    std::vector<std::unique_ptr<client>> clients;
    std::vector<std::unique_ptr<eddy::cache::lane>> by(threads);
    for (std::size_t i = 0; i < threads; ++i) {
        clients.push_back(std::make_unique<client>(engine));
        if (lanes > 0) by[i] = std::make_unique<eddy::cache::lane>(engine);
    }
    std::latch ready(static_cast<std::ptrdiff_t>(threads) + 1);
    std::vector<std::size_t> not_done(threads);
    std::vector<std::thread> running;
    for (std::size_t i = 0; i < threads; ++i) {
        running.emplace_back([&, i] {
            pin_to(i);
            ready.arrive_and_wait();
            not_done[i] = clients[i]->run(pipelines[i], by[i].get());
        });
    }
    ready.arrive_and_wait();
    const auto began = std::chrono::steady_clock::now();
    for (std::thread& each : running) each.join();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    for (const std::size_t each : not_done) left += each;
    return static_cast<double>(threads * commands_a_thread) / took.count();
}

}  // namespace

int main(int argc, char** argv) {
    const auto number = [&](int at, std::size_t otherwise) {
        return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
    };
    const std::size_t threads = number(1, 2);
    const std::size_t keys = number(2, 1'000'000);
    const std::size_t batch = number(3, 100);
    const std::size_t rounds = number(4, 5);
    std::printf("%zu keys, batch %zu\n", keys, batch);
    eddy::cache::engine engine;
    {
        client filling(engine);
        const std::string value(32, 'v');
        byte_buffer one;
        for (std::size_t i = 0; i < keys; ++i) {
            const std::string which = key(i);
            eddy::resp::write_command(one, std::vector<std::string_view>{"SET", which, value});
            filling.run({std::string(one.text())}, nullptr);
            one.clear();
        }
    }
    for (const std::string_view name : {"SET", "GET"}) {
        std::vector<std::vector<std::string>> pipelines;
        for (std::size_t i = 0; i < threads; ++i) {
            pipelines.push_back(encode(name, keys, batch, i + 1));
        }
        std::vector<std::vector<double>> rates(threads + 1);
        std::vector<std::size_t> left(threads + 1);
        for (std::size_t round = 0; round < rounds; ++round) {
            for (std::size_t lanes = 0; lanes <= threads; ++lanes) {
                rates[lanes].push_back(measure(engine, lanes, pipelines, left[lanes]));
            }
        }
        const double alone = median(rates[0]);
        for (std::size_t lanes = 0; lanes <= threads; ++lanes) {
            const double rate = median(rates[lanes]);
            const std::string side = lanes == 0 ? "alone" : std::to_string(lanes) + " lanes";
            const auto all =
                static_cast<double>(rounds * std::max<std::size_t>(lanes, 1) * commands_a_thread);
            std::printf("%s %-10s %7.2f M/s  %5.2f x  %.4f %% left\n", name.data(), side.c_str(),
                        rate / 1e6, rate / alone, 100 * static_cast<double>(left[lanes]) / all);
        }
        std::fflush(stdout);
    }
    return 0;
}
