// Opening of the gates that moved clients wait at.
#include "serving/arriving_clients.hpp"

#include <utility>

namespace eddy::serving {

/// Posted as it is: that needs no memory, and has no limit.
class arriving_clients::gate final : public posted_work {
public:
    explicit gate(executor where) : where_(std::move(where)) {}

    static void open(std::shared_ptr<gate> one) noexcept {
        gate& its = *one;
        // It may be gone before post() returns.
        const executor where = its.where_;
        its.own_ = std::move(one);
        if (!where.post(its)) its.own_.reset();
    }

    void run() noexcept override {
        is_open.set();
        own_.reset();
    }

    event is_open;

private:
    executor where_;
    std::shared_ptr<gate> own_;  // while it is posted
};

arriving_clients::~arriving_clients() {
    for (std::shared_ptr<gate>& each : gates_) gate::open(std::move(each));
}

std::shared_ptr<event> arriving_clients::gate_of(const executor& where) {
    auto made = std::make_shared<gate>(where);
    gates_.push_back(made);
    event& its = made->is_open;
    return {std::move(made), &its};
}

}  // namespace eddy::serving
