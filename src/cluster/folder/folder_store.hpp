// Store of beats in a folder. All of its work is on the loop's threads for files.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "cluster/beats/beat_store.hpp"
#include "cluster/folder/folder_files.hpp"
#include "cluster/folder/folder_reader.hpp"
#include "cluster/member_table.hpp"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace eddy::cluster {

/// Writer's side: files of one member. It may wait for a disk. One thread at a time.
class folder_writer {
public:
    /// `owners` must outlive it.
    folder_writer(std::string path, trusted_owners& owners)
        : path_(std::move(path)), owners_(owners) {}

    /// As beat_store::prepare(). Trusts from now on the owner that the folder gives to own files.
    outcome<> prepare(const std::string& name);
    /// As beat_store::write().
    outcome<std::optional<beat>> write(const beat_request& request);

private:
    std::unexpected<problem> unusable(int error) const;
    std::unexpected<problem> unwritten(std::error_code error) const;
    outcome<> check_entry(int folder, const std::string& file) const;

    const std::string path_;
    trusted_owners& owners_;
    std::uint64_t sequence_ = 0;  // of the member's file, as it was written last
    file_stamp stamp_;            // the same
};

class folder_store final : public beat_store {
public:
    folder_store(std::string path, std::vector<uid_t> trusted);

    std::string description() const override;
    task<outcome<>> prepare(std::string name) override;
    task<outcome<std::optional<beat>>> write(beat_request request) override;
    task<outcome<store_view>> read() override;
    task<void> erase(std::string name, beat last) override;
    task<void> watch(event& changed) override;

private:
    const std::string path_;
    trusted_owners owners_;
    folder_writer writer_;
    folder_reader reader_;
    std::string own_file_;  // of the own member, whose changes are no news
};

}  // namespace eddy::cluster
