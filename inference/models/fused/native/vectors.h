// Numbers in vectors of floats, whatever they are kept as. Knows ATen's portable vectors; no operation of the model.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/cpu/vec/functional.h>
#include <ATen/cpu/vec/vec.h>
#include <c10/util/BFloat16.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

using Vec = at::vec::Vectorized<float>;
using BFloat16 = at::BFloat16;
constexpr int64_t LANES = Vec::size();

// The code of each dtype in calls from Python.
enum DType : int64_t { FP32 = 0, BF16 = 1 };

inline Vec load(const float* from) {
    return Vec::loadu(from);
}

inline Vec load(const BFloat16* from) {
    Vec vector;
    at::vec::load_fp32_from_bf16(from, vector);
    return vector;
}

// The first `count` numbers, and zeros behind them.
template <typename T>
Vec load(const T* from, int64_t count) {
    if (count >= LANES) return load(from);
    float buffer[LANES] = {};
    for (int64_t i = 0; i < count; ++i) buffer[i] = static_cast<float>(from[i]);
    return Vec::loadu(buffer);
}

inline void store(float* to, Vec vector) {
    vector.store(to);
}

// ATen converts two vectors at a time and stores half of what it made by a mask, which nobody can read again at once:
// where its half is known by name it takes half of the time.
inline void store(BFloat16* to, Vec vector) {
#if defined(CPU_CAPABILITY_AVX512)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), at::vec::cvtfp32_bf16(vector));
#elif defined(CPU_CAPABILITY_AVX2)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), at::vec::cvtfp32_bf16(vector));
#else
    at::vec::convert_float_bfloat16(vector, vector).store(to, LANES);
#endif
}

// The first `count` numbers only.
template <typename T>
void store(T* to, Vec vector, int64_t count) {
    if (count >= LANES) return store(to, vector);
    float buffer[LANES];
    vector.store(buffer);
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(buffer[i]);
}

// Asks for numbers that are read soon.
template <typename T>
void prefetch(const T* numbers, int64_t count) {
    constexpr int64_t LINE = 64 / sizeof(T);
    for (int64_t i = 0; i < count; i += LINE) __builtin_prefetch(numbers + i);
}

inline float sum(Vec vector) {
    return at::vec::vec_reduce_all<float>([](Vec a, Vec b) { return a + b; }, vector);
}

inline float largest(Vec vector) {
    return at::vec::vec_reduce_all<float>([](Vec a, Vec b) { return at::vec::maximum(a, b); }, vector);
}

// Calls `work(first, end)` on parts of so many rows; short work stays on the calling thread, where it is done before
// another one has woken: 16,384 numbers take about as long.
template <typename Work>
void by_rows(int64_t num_rows, int64_t width, const Work& work) {
    at::parallel_for(0, num_rows, std::max<int64_t>(1, 16384 / width), work);
}

// Calls `work(task)` for every task; whoever is free takes the next one.
template <typename Work>
void by_tasks(int64_t num_tasks, const Work& work) {
    std::atomic<int64_t> next{0};
    const int64_t num_threads = std::min<int64_t>(num_tasks, at::get_num_threads());
    at::parallel_for(0, num_threads, 1, [&](int64_t, int64_t) {
        for (int64_t task = next++; task < num_tasks; task = next++) work(task);
    });
}
