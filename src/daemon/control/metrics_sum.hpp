// Sum of several pages in Prometheus's text format: those of processes that do one work together.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

/// Adds up pages that processes of this program have written: counters, gauges, and histograms by
/// bucket. A line that is none of the format's is left out.
class metrics_sum {
public:
    void add(std::string_view page) { add(page, false); }
    /// The same without gauges: what a process that has ended leaves behind.
    void add_what_stays(std::string_view page) { add(page, true); }
    /// One sample: the family's name with its labels, such as `errors_total{reason="x"}`. `kind` is
    /// "counter" or "gauge". The family is made if need be.
    void add_sample(std::string_view sample, std::string_view kind, std::string_view help,
                    double value);
    /// The same, in place of what has been added to it.
    void set_sample(std::string_view sample, std::string_view kind, std::string_view help,
                    double value);

    /// Families and samples in the order in which they first came.
    std::string render() const;

private:
    struct sample {
        std::string name;  ///< with labels
        double value = 0;
    };
    struct family {
        std::string name;
        std::string kind;
        std::string help;
        std::vector<sample> samples;
        std::map<std::string, std::size_t, std::less<>> by_name;
    };
    void add(std::string_view page, bool only_what_stays);
    family& family_of(std::string_view name);
    static double& value_of(family& of, std::string_view name);
    double& sample_of(std::string_view sample, std::string_view kind, std::string_view help);

    std::vector<family> families_;
    std::map<std::string, std::size_t, std::less<>> by_name_;
};

}  // namespace eddy::daemon
