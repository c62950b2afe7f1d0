// Encoding of the pipelines of `eddy bench resp`.
#include "cli/bench/resp_workload.hpp"

#include <eddy/base/random.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace eddy::cli::bench {
namespace {

constexpr std::string_view list_key = "mylist";

struct test {
    std::string_view name;
    std::vector<std::string_view> form;  // "@key" and "@value" stand for the run's own
    workload::preparation needs;
    workload::reply_kind expected;
};

const std::vector<test>& tests() {
    using enum workload::preparation;
    using enum workload::reply_kind;
    static const std::vector<test> all = {
        {"ping", {"PING"}, none, pong},
        {"set", {"SET", "@key", "@value"}, none, ok},
        {"get", {"GET", "@key"}, set_all_keys, value},
        {"incr", {"INCR", "counter"}, none, increasing},
        {"lpush", {"LPUSH", list_key, "@value"}, none, increasing},
        {"rpush", {"RPUSH", list_key, "@value"}, none, increasing},
        {"lpop", {"LPOP", list_key}, fill_list, value},
        {"rpop", {"RPOP", list_key}, fill_list, value},
        {"sadd", {"SADD", "myset", "element:000000000000"}, none, integer},
        {"hset", {"HSET", "myhash", "element:000000000000", "@value"}, none, integer},
    };
    return all;
}

}  // namespace

std::string bench_key(std::uint64_t number) { return fmt::format("key:{:012}", number); }

void encode_command(std::string& out, std::initializer_list<std::string_view> arguments) {
    fmt::format_to(std::back_inserter(out), "*{}\r\n", arguments.size());
    for (std::string_view argument : arguments)
        fmt::format_to(std::back_inserter(out), "${}\r\n{}\r\n", argument.size(), argument);
}

std::vector<std::string_view> workload::names() {
    std::vector<std::string_view> all;
    for (const test& each : tests()) all.push_back(each.name);
    return all;
}

std::optional<workload> workload::make(std::string_view name, const bench_shape& shape) {
    const auto found = std::ranges::find(tests(), name, &test::name);
    if (found == tests().end()) return std::nullopt;

    workload made;
    made.name_ = name;
    made.pipeline_ = shape.pipeline;
    made.needs_ = found->needs;
    made.expected_ = found->expected;
    made.value_.assign(shape.value_size, 'x');

    const bool random =
        shape.keys > 1 && std::ranges::find(found->form, "@key") != found->form.end();
    const std::uint64_t wanted =
        random ? std::max<std::uint64_t>(1, shape.requests / shape.pipeline) : 1;
    random_generator numbers(shape.seed);
    made.offsets_.push_back(0);
    for (std::uint64_t i = 0; i < wanted && made.encoded_.size() < most_encoded_bytes; ++i) {
        for (std::size_t j = 0; j < shape.pipeline; ++j) {
            const std::string key = bench_key(random ? numbers.below(shape.keys) : 0);
            fmt::format_to(std::back_inserter(made.encoded_), "*{}\r\n", found->form.size());
            for (std::string_view part : found->form) {
                const std::string_view text = part == "@key"     ? std::string_view(key)
                                              : part == "@value" ? std::string_view(made.value_)
                                                                 : part;
                fmt::format_to(std::back_inserter(made.encoded_), "${}\r\n{}\r\n", text.size(),
                               text);
            }
        }
        made.offsets_.push_back(made.encoded_.size());
    }
    return made;
}

}  // namespace eddy::cli::bench
