// Files of a cluster's folder, written by a test's own hand.
#pragma once

#include "base/files/temporary_folder.hpp"
#include "cluster/folder/folder_files.hpp"
#include "cluster/member_codec.hpp"
#include "cluster/member_table.hpp"
#include "cluster/testing.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace eddy::cluster::testing {

namespace fs = std::filesystem;

/// A folder that members may share.
class test_folder {
public:
    test_folder() { make(); }

    void make() const { fs::create_directory(path()); }
    std::string path() const { return temporary_.file("shared"); }
    std::string away() const { return temporary_.file("away"); }
    std::string file(const std::string& name) const { return path() + "/" + name; }

    /// Replaces a file as a member would.
    void put(const std::string& name, const std::string& text) const {
        std::ofstream(file(".by-hand"), std::ios::binary) << text;
        fs::rename(file(".by-hand"), file(name));
    }
    std::string get(const std::string& name) const {
        std::ifstream from(file(name), std::ios::binary);
        return {std::istreambuf_iterator<char>(from), {}};
    }
    bool has(const std::string& name) const { return fs::exists(fs::symlink_status(file(name))); }
    std::size_t count() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(path()), fs::directory_iterator()));
    }

private:
    eddy::testing::temporary_folder temporary_;
};

/// A member whose files the test writes.
struct hand_member {
    hand_member(const test_folder& where, std::string name, std::uint64_t seed = 7)
        : folder(where) {
        random_generator random(seed);
        info = simple_member(std::move(name), random);
        its = {.id = info.id, .term = 1, .count = 0, .sequence = 1};
    }
    std::string text() const { return *encode_member(info); }
    void show() {
        ++its.sequence;
        folder.put(info.name + ".member", text());
    }
    void beat() {
        ++its.count;
        folder.put(info.name + ".beat", format_beat(its));
    }

    const test_folder& folder;
    member_info info;
    cluster::beat its;
};

}  // namespace eddy::cluster::testing
