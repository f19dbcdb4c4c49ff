/* The processes of pslite.py: one server, its workers and the scheduler, as DMLC_ROLE says. Written against the
 * public headers of ps-lite, which are not part of this tree; compiled by that script.
 *
 *     pslite_pushpull BYTES CHUNK_BYTES
 *
 * The model of BYTES is cut into keys of CHUNK_BYTES. A worker pushes its gradients of all keys and pulls the weights by
 * one request each (ZPushPull), all in flight at once. The server keeps the pushes of a key where ZeroMQ has received
 * them; when the last worker's push has come, it sums them and runs momentum in one pass, and answers all. Nothing is copied
 * that ps-lite itself does not copy.
 *
 * A worker reads orders, a line each, from standard input, and answers each with one line; all workers get the same orders:
 *     pushpull COUNT  seconds of each round, from its leaving a barrier of the workers until all its weights are there
 *     latency COUNT   50th and 99th percentile of rounds in a row without a barrier, in microseconds, with the writing of
 *                     the gradients and the reading of the weights: a number of each cache line
 * A last word "wrong" says that a weight was wrong. Between orders all threads are blocked. */
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <sstream>

#include "peer_model.h"
#include "ps/ps.h"

namespace
{

/* BLOCK: values whose sum stays in the first cache. */
enum { APP = 0, CUSTOMER = 0, BLOCK = 1024, SETTLING_SHARE = 10 };

using Floats = ps::SArray<float>;
using Clock = std::chrono::steady_clock;

struct Sizes {
    size_t count, chunk; /* in values; the last key may be shorter */

    size_t keys() const
    {
        return (count + chunk - 1) / chunk;
    }
    size_t first(size_t key) const
    {
        return key * chunk;
    }
    size_t length(size_t key) const
    {
        return std::min(chunk, count - first(key));
    }
};

float *floats_or_end(size_t count)
{
    float *values = peer_floats(count);
    CHECK(values != nullptr) << "out of memory";
    return values;
}

/* The only server. Its handle runs on one thread of ps-lite. */
class Server
{
  public:
    explicit Server(const Sizes &sizes)
        : sizes_(sizes), weights_(floats_or_end(sizes.count)), velocity_(floats_or_end(sizes.count)),
          pushed_(sizes.keys()), server_(APP)
    {
        server_.set_request_handle([this](const ps::KVMeta &meta, const ps::KVPairs<float> &pairs,
                                       ps::KVServer<float> *) { take(meta, pairs); });
    }

  private:
    struct Push {
        ps::KVMeta meta;
        ps::KVPairs<float> pairs;
    };

    void take(const ps::KVMeta &meta, const ps::KVPairs<float> &pairs)
    {
        const size_t key = pairs.keys[0];
        CHECK(key < sizes_.keys() && pairs.vals.size() == sizes_.length(key)) << "not a key of the model";
        std::vector<Push> &pushes = pushed_[key];
        pushes.push_back({meta, pairs});
        if (pushes.size() < static_cast<size_t>(ps::NumWorkers()))
            return;
        update(key, pushes);
        answer(key, pushes);
        pushes.clear();
    }

    void update(size_t key, const std::vector<Push> &pushes)
    {
        float sum[BLOCK];
        const size_t length = sizes_.length(key);
        for (size_t begin = 0; begin < length; begin += BLOCK) {
            const size_t count = std::min<size_t>(BLOCK, length - begin), at = sizes_.first(key) + begin;
            memcpy(sum, pushes[0].pairs.vals.data() + begin, count * sizeof(float));
            for (size_t i = 1; i < pushes.size(); i++)
                add(sum, pushes[i].pairs.vals.data() + begin, count);
            peer_step(weights_ + at, velocity_ + at, sum, count, static_cast<int>(pushes.size()));
        }
    }

    /* Adds values of any alignment: small messages lie anywhere in ZeroMQ's buffer. */
    static void add(float *__restrict sum, const void *values, size_t count)
    {
        const char *bytes = static_cast<const char *>(values);
        for (size_t i = 0; i < count; i++) {
            float value;
            memcpy(&value, bytes + i * sizeof value, sizeof value);
            sum[i] += value;
        }
    }

    /* Answers with the weights themselves: they change only when all workers have pushed again, after reading the answer. */
    void answer(size_t key, const std::vector<Push> &pushes)
    {
        for (const Push &push : pushes) {
            ps::KVPairs<float> reply;
            reply.keys = push.pairs.keys;
            reply.vals = Floats(weights_ + sizes_.first(key), sizes_.length(key));
            server_.Response(push.meta, reply);
        }
    }

    const Sizes sizes_;
    float *weights_, *velocity_;
    std::vector<std::vector<Push>> pushed_; /* of each key */
    ps::KVServer<float> server_;
};

class Worker
{
  public:
    explicit Worker(const Sizes &sizes)
        : sizes_(sizes), gradient_(floats_or_end(sizes.count)), weights_(floats_or_end(sizes.count)),
          worker_(APP, CUSTOMER)
    {
        peer_gradient(gradient_, sizes.count, ps::MyRank());
        for (size_t key = 0; key < sizes.keys(); key++) {
            keys_.push_back(ps::SArray<ps::Key>(1, key));
            pushed_.push_back(Floats(gradient_ + sizes.first(key), sizes.length(key)));
            pulled_.push_back(Floats(weights_ + sizes.first(key), sizes.length(key)));
        }
    }

    std::string pushpull(size_t rounds)
    {
        std::ostringstream answer;
        for (size_t i = 0; i < rounds; i++) {
            ps::Postoffice::Get()->Barrier(CUSTOMER, ps::kWorkerGroup);
            answer << play_round() << ' ';
        }
        return answer.str() + (weights_are_right() ? "" : "wrong");
    }

    /* Measures rounds. A tenth as many come first, to settle, and are not timed. */
    std::string latency(size_t rounds)
    {
        std::vector<double> seconds(rounds + rounds / SETTLING_SHARE);
        ps::Postoffice::Get()->Barrier(CUSTOMER, ps::kWorkerGroup);
        for (double &one : seconds)
            one = play_step();
        seconds.erase(seconds.begin(), seconds.end() - static_cast<std::ptrdiff_t>(rounds));
        std::sort(seconds.begin(), seconds.end());
        std::ostringstream answer;
        answer << 1e6 * seconds[rounds / 2] << ' ' << 1e6 * seconds[rounds - 1 - rounds / 100];
        return answer.str() + (weights_are_right() ? "" : " wrong");
    }

  private:
    /* Plays a round; writes its gradients before and reads its weights afterwards: a number of each cache line. */
    double play_step()
    {
        const Clock::time_point start = Clock::now();
        peer_rewrite(gradient_, sizes_.count, static_cast<float>(ps::MyRank() + 1));
        play_round();
        peer_look_at(weights_, sizes_.count);
        return std::chrono::duration<double>(Clock::now() - start).count();
    }

    /* Plays a round, with one wait for all keys: with a wait for each, every answer would wake this thread. */
    double play_round()
    {
        const Clock::time_point start = Clock::now();
        missing_ = sizes_.keys();
        for (size_t key = 0; key < sizes_.keys(); key++)
            worker_.ZPushPull(
                keys_[key], pushed_[key], &pulled_[key], nullptr, 0, [this] { count_answer(); });
        std::unique_lock<std::mutex> lock(mutex_);
        all_there_.wait(lock, [this] { return missing_ == 0; });
        num_rounds_++;
        return std::chrono::duration<double>(Clock::now() - start).count();
    }

    void count_answer()
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (--missing_ == 0)
            all_there_.notify_one();
    }

    bool weights_are_right()
    {
        for (; num_expected_ < num_rounds_; num_expected_++)
            peer_expect_step(&expected_, ps::NumWorkers());
        return peer_repeats(weights_, sizes_.count, expected_.weights);
    }

    const Sizes sizes_;
    float *gradient_, *weights_;
    std::vector<ps::SArray<ps::Key>> keys_;
    std::vector<Floats> pushed_, pulled_; /* of each key: views of gradient_ and weights_ */
    peer_expected expected_ = {};
    size_t num_rounds_ = 0, num_expected_ = 0, missing_ = 0;
    std::mutex mutex_;
    std::condition_variable all_there_;
    ps::KVWorker<float> worker_;
};

void serve_orders(Worker &worker)
{
    std::string verb;
    for (size_t count; std::cin >> verb >> count;)
        std::cout << (verb == "latency" ? worker.latency(count) : worker.pushpull(count)) << std::endl;
}

/* Meets the others, so that the server's handle is set before a worker pushes. */
void meet()
{
    ps::Postoffice::Get()->Barrier(CUSTOMER, ps::kServerGroup + ps::kWorkerGroup);
}

} // namespace

int main(int argc, char **argv)
{
    CHECK_EQ(argc, 3) << "usage: pslite_pushpull BYTES CHUNK_BYTES";
    const Sizes sizes = {std::stoul(argv[1]) / sizeof(float), std::stoul(argv[2]) / sizeof(float)};
    ps::Start(CUSTOMER);
    if (ps::IsServer()) {
        Server server(sizes);
        meet();
        ps::Finalize(CUSTOMER);
    } else if (ps::IsWorker()) {
        Worker worker(sizes);
        meet();
        serve_orders(worker);
        ps::Finalize(CUSTOMER);
    } else {
        ps::Finalize(CUSTOMER);
    }
    return 0;
}
