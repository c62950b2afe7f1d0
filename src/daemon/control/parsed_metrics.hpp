// Strict parser of Prometheus's text format: for the tests of /metrics.
#pragma once

#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::daemon::testing {

using label_set = std::map<std::string, std::string>;

struct page_sample {
    std::string name;
    label_set labels;
    double value = 0;
};

struct page_family {
    std::string help;
    std::string kind;
    std::vector<page_sample> samples;
};

/// Throws std::runtime_error, with the line, for what a strict reader of the format refuses.
class parsed_metrics {
public:
    explicit parsed_metrics(std::string_view text) {
        if (!text.ends_with('\n')) throw std::runtime_error("the last line has no end");
        while (!text.empty()) {
            line_ = text.substr(0, text.find('\n'));
            text.remove_prefix(line_.size() + 1);
            at_ = 0;
            read_line();
        }
        for (const auto& [name, family] : families)
            if (family.kind.empty()) throw std::runtime_error(name + " has no type");
    }

    /// The value of the sample with exactly these labels.
    double value(const std::string& family, const std::string& name,
                 const label_set& labels) const {
        for (const page_sample& each : families.at(family).samples)
            if (each.name == name && each.labels == labels) return each.value;
        throw std::runtime_error("no sample of " + name);
    }

    std::map<std::string, page_family> families;

private:
    [[noreturn]] void fail(const std::string& why) const {
        throw std::runtime_error(why + ": " + std::string(line_));
    }

    static bool is_name_character(char c, bool is_first) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
               (!is_first && c >= '0' && c <= '9');
    }
    std::string name() {
        const std::size_t from = at_;
        while (at_ < line_.size() && is_name_character(line_[at_], at_ == from)) ++at_;
        if (at_ == from) fail("a name is missing");
        return std::string(line_.substr(from, at_ - from));
    }
    void expect(char c) {
        if (at_ >= line_.size() || line_[at_] != c) fail(std::string("no ") + c);
        ++at_;
    }
    /// Until `end`, with what is escaped.
    std::string text(bool has_quotes) {
        std::string read;
        for (; at_ < line_.size() && (!has_quotes || line_[at_] != '"'); ++at_) {
            if (line_[at_] != '\\') {
                read += line_[at_];
                continue;
            }
            if (++at_ >= line_.size()) fail("it ends within an escape");
            const char c = line_[at_];
            if (c == 'n')
                read += '\n';
            else if (c == '\\' || (has_quotes && c == '"'))
                read += c;
            else
                fail("an unknown escape");
        }
        return read;
    }

    void read_line() {
        if (line_.starts_with("# HELP ")) {
            at_ = 7;
            current_ = name();
            expect(' ');
            if (!families.emplace(current_, page_family{text(false), "", {}}).second)
                fail("described twice");
        } else if (line_.starts_with("# TYPE ")) {
            at_ = 7;
            if (name() != current_) fail("the type of another family");
            expect(' ');
            page_family& family = families.at(current_);
            family.kind = name();
            static const std::set<std::string> kinds = {"counter", "gauge", "histogram"};
            if (!kinds.contains(family.kind) || at_ != line_.size()) fail("an unknown kind");
        } else {
            read_sample();
        }
    }

    void read_sample() {
        page_sample sample;
        sample.name = name();
        if (at_ < line_.size() && line_[at_] == '{') {
            ++at_;
            for (;;) {
                std::string label = name();
                expect('=');
                expect('"');
                std::string value = text(true);
                expect('"');
                if (!sample.labels.emplace(std::move(label), std::move(value)).second)
                    fail("a label comes twice");
                if (at_ < line_.size() && line_[at_] == '}') break;
                expect(',');
            }
            ++at_;
        }
        expect(' ');
        const std::string number(line_.substr(at_));
        char* end = nullptr;
        sample.value = std::strtod(number.c_str(), &end);
        if (number.empty() || *end != '\0') fail("no number");

        page_family& family = families.at(current_);
        const bool is_distribution = family.kind == "histogram";
        const bool belongs = is_distribution ? sample.name == current_ + "_bucket" ||
                                                   sample.name == current_ + "_sum" ||
                                                   sample.name == current_ + "_count"
                                             : sample.name == current_;
        if (!belongs) fail("a sample outside its family " + current_);
        if ((sample.name.ends_with("_bucket") && is_distribution) != sample.labels.contains("le"))
            fail("a bucket without a bound, or a bound without one");
        for (const page_sample& each : family.samples)
            if (each.name == sample.name && each.labels == sample.labels) fail("it comes twice");
        family.samples.push_back(std::move(sample));
    }

    std::string_view line_;
    std::size_t at_ = 0;
    std::string current_;
};

}  // namespace eddy::daemon::testing
