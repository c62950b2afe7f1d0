// Cost of one command inside the process: parsed, executed, replied; no socket.
//
//   cache_engine [keys] [batch] [row] [rounds]      default: 1000000 100, all rows, 5
//
// Pipelines are encoded in advance and cycled through. Each line is one row: nanoseconds of CPU an
// operation, the best of the rounds, and for the filled database the bytes a key. `row` chooses
// those whose name begins so, for a profile.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/random.hpp>
#include <eddy/wire/resp/reply_writer.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/engine/engine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using eddy::byte_buffer;

double cpu_ns() {
    timespec t;
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

std::size_t resident_bytes() {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0;
    statm >> pages >> pages;
    return pages * 4096;
}

using arguments = std::vector<std::string>;

struct pipeline {
    std::string bytes;
    std::size_t commands = 0;
};

class bench {
public:
    bench(std::size_t keys, std::size_t batch, std::string_view chosen, std::size_t rounds)
        : keys_(keys), batch_(batch), chosen_(chosen), rounds_(rounds) {}

    // Writes `make(i)`'s commands as pipelines of the batch size.
    std::vector<pipeline> encode(std::size_t commands,
                                 const std::function<arguments(std::size_t)>& make) {
        std::vector<pipeline> made;
        byte_buffer out;
        for (std::size_t i = 0; i < commands; ++i) {
            const arguments args = make(i);
            const std::vector<std::string_view> views(args.begin(), args.end());
            eddy::resp::write_command(out, views);
            if ((i + 1) % batch_ == 0 || i + 1 == commands) {
                made.push_back({std::string(out.text()), i % batch_ + 1});
                out.clear();
            }
        }
        return made;
    }

    std::size_t run(const std::vector<pipeline>& pipelines) {
        std::size_t done = 0;
        for (const pipeline& each : pipelines) {
            std::string_view input = each.bytes;
            while (!input.empty()) {
                const auto parsed = batch_parser_.parse(parser_, input);
                // A script that the machine holds up is left in the middle.
                for (std::size_t i = 0; i < parsed.commands.size();) {
                    i += engine_.execute(client_, std::span(parsed.commands).subspan(i), out_);
                    while (engine_.is_behind()) engine_.go_on();
                }
                done += parsed.commands.size();
                input.remove_prefix(parsed.consumed);
            }
            out_.clear();
        }
        return done;
    }

    void row(const std::string& name, std::size_t commands,
             const std::function<arguments(std::size_t)>& make) {
        if (!name.starts_with(chosen_)) return;
        const auto pipelines = encode(commands, make);
        double best = 1e18;
        for (std::size_t i = 0; i < rounds_; ++i) {
            const double before = cpu_ns();
            const std::size_t done = run(pipelines);
            best = std::min(best, (cpu_ns() - before) / static_cast<double>(done));
        }
        std::printf("%-28s %8.1f ns  %7.2f M/s\n", name.c_str(), best, 1e3 / best);
        std::fflush(stdout);
    }

    std::string key(std::size_t i) const {
        char text[32];
        std::snprintf(text, sizeof text, "key:%012zu", i % keys_);
        return text;
    }

    eddy::cache::engine& engine() noexcept { return engine_; }

private:
    std::size_t keys_;
    std::size_t batch_;
    std::string_view chosen_;
    std::size_t rounds_;
    eddy::cache::engine engine_{eddy::cache::engine_options{}};
    eddy::cache::client_session client_{engine_};
    eddy::resp::request_parser parser_;
    eddy::resp::request_batch batch_parser_;
    byte_buffer out_;
};

// Hashes of some fields in blocks, as Redis's listpacks, and as tables.
void small_collections(std::size_t batch, std::string_view chosen, std::size_t rounds) {
    if (!std::string_view("hash").starts_with(chosen.substr(0, 4))) return;
    constexpr std::size_t all = 500'000;
    const std::string value(16, 'v');
    for (const std::size_t fields : {40U, 100U, 500U}) {
        for (const bool in_block : {true, false}) {
            bench b(all, batch, chosen, rounds);
            const std::size_t hashes = all / fields;
            const auto make = [&](std::size_t i, const char* command) {
                return arguments{command, "hash:" + std::to_string(i % hashes),
                                 "field:" + std::to_string(i / hashes % fields)};
            };
            b.run(b.encode(1, [&](std::size_t) {
                return arguments{"CONFIG", "SET", "hash-max-listpack-entries",
                                 in_block ? "512" : "32"};
            }));
            const auto filling = b.encode(all, [&](std::size_t i) {
                arguments args = make(i, "HSET");
                args.push_back(value);
                return args;
            });
            const double at = cpu_ns();
            b.run(filling);
            const double took = cpu_ns() - at;
            const std::string name =
                "hash of " + std::to_string(fields) + " fields, " + (in_block ? "block" : "table");
            std::printf("%-28s %8.1f ns to fill, %.1f B a field\n", name.c_str(), took / all,
                        static_cast<double>(b.engine().stats().used_memory) / all);
            eddy::random_generator random(1);
            const auto any = [&](const char* command) { return make(random.below(all), command); };
            b.row(name + " HGET", all, [&](std::size_t) { return any("HGET"); });
            b.row(name + " HGET, none", all, [&](std::size_t) {
                arguments args = any("HGET");
                args[2] += 'x';
                return args;
            });
            b.row(name + " HSET", all, [&](std::size_t) {
                arguments args = any("HSET");
                args.push_back(value);
                return args;
            });
            b.row(name + " HSET, other size", all, [&](std::size_t) {
                arguments args = any("HSET");
                args.emplace_back(8 + random.below(16), 'w');
                return args;
            });
            b.row(name + " HDEL+HSET", all, [&, i = std::size_t{0}](std::size_t) mutable {
                arguments args = make(i / 2 * 7919, i % 2 == 0 ? "HDEL" : "HSET");
                if (i++ % 2 != 0) args.push_back(value);
                return args;
            });
            b.row(name + " HGETALL", all / fields, [&](std::size_t) {
                arguments args = any("HGETALL");
                args.pop_back();
                return args;
            });
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::size_t keys = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
    const std::size_t batch = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100;
    const std::string_view chosen = argc > 3 ? argv[3] : "";
    const std::size_t rounds = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 5;
    const std::string value32(32, 'v');
    constexpr std::size_t hot = 200'000;
    std::printf("keys %zu, batch %zu\n", keys, batch);
    {
        bench b(keys, batch, chosen, rounds);
        b.row("hot SET 3 B", hot,
              [](std::size_t) { return arguments{"SET", "key:__rand", "xxx"}; });
        b.row("hot GET 3 B", hot, [](std::size_t) { return arguments{"GET", "key:__rand"}; });
        b.row("hot INCR", hot, [](std::size_t) { return arguments{"INCR", "counter"}; });
        b.row("hot LPUSH", hot, [](std::size_t) { return arguments{"LPUSH", "mylist", "xxx"}; });
        b.row("hot LPOP", hot, [](std::size_t) { return arguments{"LPOP", "mylist"}; });
        b.row("hot RPUSH", hot, [](std::size_t) { return arguments{"RPUSH", "mylist", "xxx"}; });
        b.row("hot SADD one", hot,
              [](std::size_t) { return arguments{"SADD", "myset", "element:__rand_int__"}; });
        b.row("hot SADD 100k members", hot, [](std::size_t i) {
            return arguments{"SADD", "bigset", "element:" + std::to_string(i * 7919 % 100'000)};
        });
        b.row("hot HSET one", hot, [](std::size_t) {
            return arguments{"HSET", "myhash", "element:__rand_int__", "xxx"};
        });
        b.row("hot HGET one", hot,
              [](std::size_t) { return arguments{"HGET", "myhash", "element:__rand_int__"}; });
        b.row("PING", hot, [](std::size_t) { return arguments{"PING"}; });
        constexpr std::size_t scripts = 20'000;
        b.row("script, one command", scripts, [](std::size_t) {
            return arguments{"EVAL", "return redis.call('INCR', KEYS[1])", "1", "counter"};
        });
        b.row("script, JSON and a loop", scripts, [](std::size_t) {
            return arguments{"EVAL",
                             "local t = cjson.decode(ARGV[1]) "
                             "for i = 1, #t.prices do t.sum = t.sum + t.prices[i] end "
                             "return cjson.encode(t)",
                             "0", R"({"name":"basket","prices":[1,2.5,3,4,5,6,7,8],"sum":0})"};
        });
    }
    {
        bench b(keys, batch, chosen, rounds);
        const std::size_t before = resident_bytes();
        std::size_t next = 0;
        // In slices, so that the encoded commands do not count as the cache's memory.
        double filling = 0;
        while (next < keys) {
            const std::size_t slice = std::min<std::size_t>(10'000, keys - next);
            const auto pipelines = b.encode(
                slice, [&](std::size_t i) { return arguments{"SET", b.key(next + i), value32}; });
            const double at = cpu_ns();
            b.run(pipelines);
            filling += cpu_ns() - at;
            next += slice;
        }
        const double n = static_cast<double>(keys);
        const auto stats = b.engine().stats();
        std::printf("%-28s %8.1f ns\n", "fill", filling / n);
        std::printf("%-28s %8.1f B counted, %.1f B reserved, %.1f B resident\n", "memory a key",
                    static_cast<double>(stats.used_memory) / n,
                    static_cast<double>(stats.reserved_memory) / n,
                    static_cast<double>(resident_bytes() - before) / n);
        eddy::random_generator random(1);
        constexpr std::size_t commands = 1'000'000;
        b.row("random GET", commands,
              [&](std::size_t) { return arguments{"GET", b.key(random.below(keys))}; });
        b.row("random SET", commands,
              [&](std::size_t) { return arguments{"SET", b.key(random.below(keys)), value32}; });
        b.row("random GET, missing", commands,
              [&](std::size_t) { return arguments{"GET", b.key(random.below(keys)) + "x"}; });
        b.row("random EXPIRE", commands,
              [&](std::size_t) { return arguments{"EXPIRE", b.key(random.below(keys)), "1000"}; });
        b.row("random DEL+SET", commands, [&, i = std::size_t{0}](std::size_t) mutable {
            const std::string key = b.key(i / 2 * 7919);
            return i++ % 2 == 0 ? arguments{"DEL", key} : arguments{"SET", key, value32};
        });
    }
    small_collections(batch, chosen, rounds);
    return 0;
}
