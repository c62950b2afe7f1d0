// Test client of an engine in this process, and replies as trees.
//
// The room testing holds fixtures, and the tests that compare the engine with a redis-server. Files
// in reading order:
//
//   test_client.hpp                        the client; mirror.hpp, replication_fixture.hpp,
//                                          hooks_fixture.hpp engines beside other parts
//   redis_process.hpp                      a real redis-server; differential_fixture.hpp both
//   differential_*.hpp, random_commands.hpp   the scripts of the comparisons
//   key_table.hpp, marked_block.hpp        fixtures of the lower rooms
//   *_test.cpp                             the comparisons, by subject
//
// It stands on all rooms; none includes it but in tests.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/resp/reply_parser.hpp>
#include <eddy/wire/resp/reply_writer.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/engine/engine.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache::testing {

using arguments = std::vector<std::string>;

/// The commands of a text, which are separated by semicolons and surrounded by white space.
inline std::vector<std::string_view> separate(std::string_view text) {
    std::vector<std::string_view> commands;
    while (!text.empty()) {
        const std::size_t size = std::min(text.find(';'), text.size());
        std::string_view one = text.substr(0, size);
        text.remove_prefix(std::min(size + 1, text.size()));
        const std::size_t first = one.find_first_not_of(" \n");
        if (first == std::string_view::npos) continue;
        one = one.substr(first, one.find_last_not_of(" \n") + 1 - first);
        commands.push_back(one);
    }
    return commands;
}

/// Splits at spaces. "''" stands for the empty text.
inline arguments split(std::string_view line) {
    arguments words;
    while (!line.empty()) {
        const std::size_t size = std::min(line.find(' '), line.size());
        const std::string_view word = line.substr(0, size);
        if (!word.empty()) words.emplace_back(word == "''" ? std::string_view{} : word);
        line.remove_prefix(std::min(size + 1, line.size()));
    }
    return words;
}

/// A session that takes commands as texts and gives replies as RESP.
class test_client {
public:
    explicit test_client(engine& home) : engine_(home), session_(home) {}

    /// Output of the command: at once, or after the end of a script that was left in the middle and
    /// is not busy. Empty for a command that waits, or that is queued behind one.
    std::string ask(std::span<const std::string> args) {
        std::string all = begin(args);
        if (!engine_.script_is_late(session_)) return all;
        while (engine_.script_is_late(session_) && !engine_.script_is_busy()) engine_.go_on();
        return all + pushed();
    }
    /// Output at once; the client's script may be left in the middle.
    std::string begin(std::span<const std::string> args) {
        waiting_.emplace_back(args.begin(), args.end());
        out_.clear();
        execute_waiting();
        return std::string(out_.text());
    }
    std::string operator()(std::string_view line) { return ask(split(line)); }
    std::string operator()(std::initializer_list<std::string> args) { return ask(arguments(args)); }

    /// Output that other clients caused: messages, the end of a wait, and the replies to commands
    /// queued behind it.
    std::string pushed() {
        session_.woken = false;
        out_.clear();
        engine_.take_output(session_, out_);
        execute_waiting();
        return std::string(out_.text());
    }

    client_session& who() noexcept { return session_; }
    /// True if the engine has notified of output since the last pushed().
    bool woken() const noexcept { return session_.woken; }
    /// True if the engine has closed the connection.
    bool closed() const noexcept { return session_.closed; }

private:
    struct own_session final : client_session {
        explicit own_session(engine& home) : client_session(home, "test:1", "test:0") {}
        void wake() noexcept override { woken = true; }
        void close_now() noexcept override { closed = true; }
        bool woken = false;
        bool closed = false;
    };

    void execute_waiting() {
        while (!waiting_.empty() && !session_.closing && !session_.blocked) {
            const arguments& next = waiting_.front();
            const std::vector<std::string_view> views(next.begin(), next.end());
            const resp::command one{views.data(), views.size()};
            if (engine_.execute(session_, {&one, 1}, out_) == 1) waiting_.pop_front();
        }
    }

    engine& engine_;
    own_session session_;
    byte_buffer out_;
    std::deque<arguments> waiting_;
};

/// A reply taken apart.
struct reply_tree {
    resp::reply_type type = resp::reply_type::null;
    std::string text;
    std::vector<reply_tree> children;

    /// Without the notes of COMMAND INFO's key specifications, which are prose.
    void drop_notes() {
        for (reply_tree& each : children) each.drop_notes();
        for (std::size_t i = 0; i + 1 < children.size(); i += 2) {
            if (children[i].text != "notes") continue;
            children.erase(children.begin() + static_cast<std::ptrdiff_t>(i),
                           children.begin() + static_cast<std::ptrdiff_t>(i) + 2);
            return;
        }
    }

    /// With the children sorted, for replies whose order means nothing; `group` of them stay
    /// together.
    void sort_children(std::size_t group = 1) {
        std::vector<std::vector<reply_tree>> groups;
        for (std::size_t i = 0; i + group <= children.size(); i += group) {
            groups.emplace_back(children.begin() + static_cast<std::ptrdiff_t>(i),
                                children.begin() + static_cast<std::ptrdiff_t>(i + group));
        }
        const auto text_of = [](const std::vector<reply_tree>& g) {
            std::string all;
            for (const reply_tree& each : g) all += each.print();
            return all;
        };
        std::ranges::sort(groups, {}, text_of);
        children.clear();
        for (const auto& g : groups) children.insert(children.end(), g.begin(), g.end());
    }

    /// With numbers in one way to write them: Redis 7.0 gives scores more digits than later ones.
    void unify_numbers() {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        if (children.empty() && !text.empty() && *end == '\0') {
            char digits[32];
            std::snprintf(digits, sizeof digits, "%.17g", value);
            text = digits;
        }
        for (reply_tree& each : children) each.unify_numbers();
    }

    std::string print() const {
        std::string all = std::to_string(static_cast<int>(type)) + "<" + text + ">";
        if (children.empty()) return all;
        all += '(';
        for (const reply_tree& each : children) all += each.print() + ' ';
        return all + ')';
    }
};

/// The first reply in `bytes`.
inline reply_tree parse_reply(std::string_view bytes) {
    resp::reply_parser parser;
    std::vector<reply_tree> open(1);
    std::vector<std::uint64_t> left{1};
    for (;;) {
        const auto outcome = parser.next(bytes);
        if (outcome.status != resp::parse_status::complete) return {};
        bytes.remove_prefix(outcome.consumed);
        const resp::reply_event& e = outcome.event;
        reply_tree node{e.type, std::string(e.text), {}};
        const bool numeric =
            e.type == resp::reply_type::integer || e.type == resp::reply_type::boolean;
        if (numeric) node.text = std::to_string(e.integer);
        const bool aggregate = e.type == resp::reply_type::array ||
                               e.type == resp::reply_type::map || e.type == resp::reply_type::set ||
                               e.type == resp::reply_type::push;
        if (aggregate) node.text = std::to_string(e.count);
        if (aggregate && e.count > 0) {
            open.push_back(std::move(node));
            left.push_back(e.count);
            continue;
        }
        open.back().children.push_back(std::move(node));
        while (--left.back() == 0) {
            if (open.size() == 1) return std::move(open[0].children[0]);
            reply_tree done = std::move(open.back());
            open.pop_back();
            left.pop_back();
            open.back().children.push_back(std::move(done));
        }
    }
}

}  // namespace eddy::cache::testing
