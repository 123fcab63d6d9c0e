// Attention of few queries over long tables: each block is read where it lies, once for all rows that begin with it.
//
// The tables of the rows are a tree: what several rows share at their beginning is a segment of all of them, and what
// comes behind is split again. Every segment is attended to on its own, with a softmax of its own in fp32, in pieces
// that any thread may take; at the end each row joins its pieces (as in flash-decoding and cascade attention).

#include "paged.h"

namespace {

constexpr int64_t PIECE_TOKENS = 512;  // of one task: long tables keep every thread busy
constexpr int64_t AHEAD_TOKENS = 32;   // whose keys are asked for early: a fifth less time at 1,000 tokens
constexpr int64_t TILE_TOKENS = 64;    // scores that wait for their softmax: some KiB for each group of heads

struct Row {
    const int64_t* table;
    int64_t first;   // token that it sees
    int64_t length;  // tokens before the end
};

// Tokens that all members see whole.
struct Piece {
    std::vector<int64_t> members;
    int64_t first, end;
    int64_t result;  // place of the first member's first head
};

class Plan {
public:
    Plan(const std::vector<Row>& rows, int64_t block_tokens) : rows_(rows), block_tokens_(block_tokens) {
        std::vector<int64_t> all;
        for (int64_t row = 0; row < static_cast<int64_t>(rows.size()); ++row) {
            if (rows[row].first > 0)
                add({row}, rows[row].first, rows[row].length);
            else
                all.push_back(row);
        }
        split(all, 0);
    }

    std::vector<Piece> pieces;
    int64_t num_results = 0;  // a piece has one for each of its members

private:
    void add(const std::vector<int64_t>& members, int64_t first, int64_t end) {
        for (; first < end; first += PIECE_TOKENS) {
            pieces.push_back({members, first, std::min(first + PIECE_TOKENS, end), num_results});
            num_results += members.size();
        }
    }

    bool has_whole(int64_t row, int64_t block) const { return (block + 1) * block_tokens_ <= rows_[row].length; }

    // What `members`, which are alike before `block`, see from there on.
    void split(const std::vector<int64_t>& members, int64_t block) {
        std::vector<bool> is_done(members.size(), false);
        for (size_t i = 0; i < members.size(); ++i) {
            if (is_done[i]) continue;
            const int64_t row = members[i];
            std::vector<int64_t> alike{row};
            if (has_whole(row, block))
                for (size_t j = i + 1; j < members.size(); ++j)
                    if (!is_done[j] && is_same(row, members[j], block)) {
                        alike.push_back(members[j]);
                        is_done[j] = true;
                    }
            if (alike.size() == 1) {
                add(alike, block * block_tokens_, rows_[row].length);
                continue;
            }
            int64_t end = block + 1;
            while (are_same(alike, end)) ++end;
            add(alike, block * block_tokens_, end * block_tokens_);
            split(alike, end);
        }
    }

    bool is_same(int64_t row, int64_t other, int64_t block) const {
        return has_whole(other, block) && rows_[row].table[block] == rows_[other].table[block];
    }

    bool are_same(const std::vector<int64_t>& alike, int64_t block) const {
        return has_whole(alike[0], block) &&
               std::all_of(alike.begin() + 1, alike.end(), [&](int64_t row) { return is_same(alike[0], row, block); });
    }

    const std::vector<Row>& rows_;
    int64_t block_tokens_;
};

// Results of pieces: for each query head the largest score, the sum of weights, and the weighted values.
struct Results {
    std::vector<float> largest, total, values;
    int64_t stride;  // of values: head_dim in whole vectors

    void make_room(int64_t num, int64_t num_vectors) {
        stride = num_vectors * LANES;
        largest.resize(num);
        total.resize(num);
        values.resize(num * stride);
    }
};

// NUM_VECTORS: of a head, where that is known and whole; 0 else.
template <typename T, int NUM_VECTORS>
void score(float* scores, const float* queries, int64_t num_queries, int64_t stride, const T* key, int64_t head_dim) {
    constexpr int64_t MOST = NUM_VECTORS ? NUM_VECTORS : 512 / LANES;
    const int64_t num = NUM_VECTORS ? NUM_VECTORS : stride / LANES;
    Vec parts[MOST];
    for (int64_t v = 0; v < num; ++v)
        parts[v] = NUM_VECTORS ? load(key + v * LANES) : load(key + v * LANES, head_dim - v * LANES);
    for (int64_t query = 0; query < num_queries; ++query) {
        const float* numbers = queries + query * stride;
        Vec product = parts[0] * load(numbers);
        for (int64_t v = 1; v < num; ++v) product = at::vec::fmadd(parts[v], load(numbers + v * LANES), product);
        scores[query * TILE_TOKENS] = sum(product);
    }
}

// Adds the weighted values of a tile to QUERIES heads, VECTORS of each at a time.
template <typename T, int QUERIES, int VECTORS>
void weigh(float* sums, int64_t stride, const float* weights, const T* const* values, int64_t num_tokens,
           int64_t count) {
    Vec registers[QUERIES][VECTORS];
    for (int q = 0; q < QUERIES; ++q)
        for (int v = 0; v < VECTORS; ++v) registers[q][v] = load(sums + q * stride + v * LANES);
    for (int64_t token = 0; token < num_tokens; ++token) {
        Vec parts[VECTORS];
        for (int v = 0; v < VECTORS; ++v)
            parts[v] = VECTORS > 1 ? load(values[token] + v * LANES) : load(values[token], count);
        for (int q = 0; q < QUERIES; ++q) {
            const Vec weight(weights[q * TILE_TOKENS + token]);
            for (int v = 0; v < VECTORS; ++v) registers[q][v] = at::vec::fmadd(weight, parts[v], registers[q][v]);
        }
    }
    for (int q = 0; q < QUERIES; ++q)
        for (int v = 0; v < VECTORS; ++v) store(sums + q * stride + v * LANES, registers[q][v]);
}

template <typename T, int QUERIES>
void weigh_heads(float* sums, int64_t stride, const float* weights, const T** values, int64_t num_tokens,
                 int64_t head_dim) {
    int64_t at = 0;
    const auto go_on = [&](int64_t numbers) {
        at += numbers;
        for (int64_t token = 0; token < num_tokens; ++token) values[token] += numbers;
    };
    for (; at + 4 * LANES <= head_dim; go_on(4 * LANES))
        weigh<T, QUERIES, 4>(sums + at, stride, weights, values, num_tokens, 0);
    for (; at < head_dim; go_on(LANES))
        weigh<T, QUERIES, 1>(sums + at, stride, weights, values, num_tokens, head_dim - at);
    for (int64_t token = 0; token < num_tokens; ++token) values[token] -= at;
}

// Scores become weights relative to the largest so far; what was summed before is brought to the same.
inline void soften(float* scores, int64_t num_tokens, float& most, float& total, float* sums, int64_t stride) {
    for (int64_t t = num_tokens; t < (num_tokens + LANES - 1) / LANES * LANES; ++t)
        scores[t] = -std::numeric_limits<float>::infinity();
    Vec peak(most);
    for (int64_t t = 0; t < num_tokens; t += LANES) peak = at::vec::maximum(peak, load(scores + t));
    const float highest = largest(peak);
    if (highest != most) {
        const float factor = std::exp(most - highest);
        total *= factor;
        for (int64_t i = 0; i < stride; i += LANES) store(sums + i, load(sums + i) * Vec(factor));
        most = highest;
    }
    Vec added(0.f);
    for (int64_t t = 0; t < num_tokens; t += LANES) {
        const Vec weight = (load(scores + t) - Vec(highest)).exp_u20();
        store(scores + t, weight);
        added += weight;
    }
    total += sum(added);
}

template <typename T>
struct Work {
    Paged<T> paged;
    const std::vector<Row>& rows;
    const T* queries;
    Results& results;

    // One piece for one KV head.
    void operator()(const Piece& piece, int64_t kv_head) const {
        const Layout& layout = paged.layout;
        const int64_t group = paged.group(), stride = results.stride;
        const int64_t num_queries = piece.members.size() * group;
        thread_local std::vector<float> scaled, scores;
        scaled.assign(num_queries * stride, 0.f);
        scores.resize(num_queries * TILE_TOKENS);
        for (int64_t query = 0; query < num_queries; ++query) {
            const int64_t head = piece.members[query / group] * layout.num_heads + kv_head * group + query % group;
            for (int64_t i = 0; i < layout.head_dim; ++i)
                scaled[query * stride + i] = static_cast<float>(queries[head * layout.head_dim + i]) * layout.scale;
        }
        // Results lie by KV head, then member, then head of its group.
        const int64_t at = (piece.result + kv_head * num_results) * group;
        float* sums = results.values.data() + at * stride;
        std::fill_n(results.largest.data() + at, num_queries, -std::numeric_limits<float>::infinity());
        std::fill_n(results.total.data() + at, num_queries, 0.f);
        std::fill_n(sums, num_queries * stride, 0.f);
        const int64_t* table = rows[piece.members[0]].table;
        int64_t offsets[PIECE_TOKENS];
        for (int64_t token = piece.first; token < piece.end;) {
            int64_t offset = paged.offset(table, kv_head, token);
            const int64_t end = std::min(piece.end, token + layout.block_tokens - token % layout.block_tokens);
            for (; token < end; ++token, offset += layout.head_dim) offsets[token - piece.first] = offset;
        }
        const T* values[TILE_TOKENS];
        const int64_t num_piece_tokens = piece.end - piece.first;
        for (int64_t first = 0; first < num_piece_tokens; first += TILE_TOKENS) {
            const int64_t num_tokens = std::min(TILE_TOKENS, num_piece_tokens - first);
            for (int64_t token = 0; token < num_tokens; ++token) {
                const int64_t ahead = std::min(first + token + AHEAD_TOKENS, num_piece_tokens - 1);
                prefetch(paged.keys + offsets[ahead], layout.head_dim);
                values[token] = paged.values + offsets[first + token];
                prefetch(values[token], layout.head_dim);
                score_all(scores.data() + token, scaled.data(), num_queries, stride,
                          paged.keys + offsets[first + token]);
            }
            for (int64_t query = 0; query < num_queries; ++query)
                soften(scores.data() + query * TILE_TOKENS, num_tokens, results.largest[at + query],
                       results.total[at + query], sums + query * stride, stride);
            int64_t query = 0;
            for (; query + 4 <= num_queries; query += 4)
                weigh_heads<T, 4>(sums + query * stride, stride, scores.data() + query * TILE_TOKENS, values,
                                  num_tokens, layout.head_dim);
            const auto rest = num_queries - query;
            const auto last = rest == 3 ? weigh_heads<T, 3> : rest == 2 ? weigh_heads<T, 2> : weigh_heads<T, 1>;
            if (rest)
                last(sums + query * stride, stride, scores.data() + query * TILE_TOKENS, values, num_tokens,
                     layout.head_dim);
        }
    }

    void score_all(float* scores, const float* scaled, int64_t num_queries, int64_t stride, const T* key) const {
        const int64_t head_dim = paged.layout.head_dim;
        if (head_dim == 4 * LANES)
            score<T, 4>(scores, scaled, num_queries, stride, key, head_dim);
        else if (head_dim == 8 * LANES)
            score<T, 8>(scores, scaled, num_queries, stride, key, head_dim);
        else
            score<T, 0>(scores, scaled, num_queries, stride, key, head_dim);
    }

    int64_t num_results;
};

// One head of one row: what its pieces found, each by its share of the weights.
template <typename T>
void join(T* out, const Results& results, const std::vector<int64_t>& parts, int64_t head_dim) {
    float most = -std::numeric_limits<float>::infinity(), total = 0.f;
    for (const int64_t part : parts) most = std::max(most, results.largest[part]);
    for (const int64_t part : parts) total += results.total[part] * std::exp(results.largest[part] - most);
    for (int64_t i = 0; i < head_dim; i += LANES) {
        Vec values(0.f);
        for (const int64_t part : parts) {
            const Vec share(std::exp(results.largest[part] - most) / total);
            values = at::vec::fmadd(share, load(results.values.data() + part * results.stride + i), values);
        }
        store(out + i, values, head_dim - i);
    }
}

template <typename T>
void attend_rows(T* out, const T* queries, const Paged<T>& paged, const std::vector<Row>& rows) {
    const Layout& layout = paged.layout;
    const int64_t group = paged.group();
    const Plan plan(rows, layout.block_tokens);
    thread_local Results results;
    results.make_room(plan.num_results * layout.num_heads, (layout.head_dim + LANES - 1) / LANES);
    const Work<T> work{paged, rows, queries, results, plan.num_results};
    const int64_t num_pieces = plan.pieces.size();
    by_tasks(num_pieces * layout.kv_heads,
             [&](int64_t task) { work(plan.pieces[task / layout.kv_heads], task % layout.kv_heads); });
    std::vector<std::vector<int64_t>> parts(rows.size());
    for (const Piece& piece : plan.pieces)
        for (size_t i = 0; i < piece.members.size(); ++i) parts[piece.members[i]].push_back(piece.result + i);
    const Results& found = results;  // of this thread: those that help have others
    by_rows(rows.size(), layout.num_heads * layout.head_dim, [&](int64_t first, int64_t end) {
        std::vector<int64_t> of_head;
        for (int64_t row = first; row < end; ++row)
            for (int64_t head = 0; head < layout.num_heads; ++head) {
                of_head.clear();
                for (const int64_t part : parts[row])
                    of_head.push_back((part + head / group * plan.num_results) * group + head % group);
                join(out + (row * layout.num_heads + head) * layout.head_dim, found, of_head, layout.head_dim);
            }
    });
}

}  // namespace

extern "C" void rill_attend_rows(const Layout* layout, void* out, const void* queries, const void* keys,
                                 const void* values, const int64_t* tables, const int64_t* positions,
                                 int64_t num_tables, int64_t num_queries, int64_t num_blocks) {
    const auto run = [&](auto zero) {
        using T = decltype(zero);
        const Paged<T> paged{static_cast<const T*>(keys), static_cast<const T*>(values), *layout};
        std::vector<Row> rows;
        for (int64_t i = 0; i < num_tables * num_queries; ++i) {
            const int64_t length = positions[i] + 1;
            rows.push_back({tables + i / num_queries * num_blocks, paged.first_seen(length), length});
        }
        attend_rows(static_cast<T*>(out), static_cast<const T*>(queries), paged, rows);
    };
    layout->dtype == BF16 ? run(BFloat16()) : run(0.f);
}
