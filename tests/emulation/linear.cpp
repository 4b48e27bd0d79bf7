#include "warp.h"
#include "csrc/cuda/linear_strip.cuh"
using namespace softdtw;
int CAREFUL = 0, PLAIN = 0;
template <class S, class Tile_, class T>
int run(const std::vector<double>& x, const std::vector<double>& y, double gamma, const char* name) {
  using Tile = LinearTile<S, Tile_>;
  int n = x.size(), m = y.size();
  std::vector<T> xs(x.begin(), x.end()), ys(y.begin(), y.end());
  Problem<T> p; p.x = {xs.data(), n, 1, 1}; p.y = {ys.data(), m, 1, 1}; p.batch = 1; p.n = n; p.m = m; p.dim = 1; p.gamma = gamma; p.scale = 1 / (gamma * kLn2);
  Sizes<S> sizes(p);
  int64_t bytes = LinearSaved<S>::bytes_of_pair(sizes);
  std::vector<double> mem(bytes / 8 + 64, -7e77), fl(LinearFlows<S>::bytes(1, sizes, 1) / 8 + 64, -7e77);
  LinearSaved<S> saved(mem.data(), sizes, bytes);
  LinearFlows<S> flows(fl.data(), 1, sizes);
  T value = NAN, one = 1; std::vector<T> dx(n, NAN), dy(m, NAN);
  Gradient<T> g; g.value = &value; g.grad_value = &one; g.x = {dx.data(), n, 1, 1}; g.y = {dy.data(), m, 1, 1};
  Extent ext = p.extent(0);
  int strips = (n + S::kStripRows - 1) / S::kStripRows;
  bool ok = true; PLAIN = CAREFUL = 0;
  for (int s = 0; s < strips && ok; ++s) {
    ForwardStrip<S> job; job.pair = 0; job.strip = s; job.edges = saved.edges;
    Warp::get().run([&] { bool r = linear_forward_strip<S, Tile>(p, ext, job, saved, &value); if (threadIdx.x == 0) ok = r; });
  }
  // float64 reference
  std::vector<std::vector<long double>> R(n + 2, std::vector<long double>(m + 2, 1e300L)), E(n + 2, std::vector<long double>(m + 2, 0)), C(n + 2, std::vector<long double>(m + 2, 0));
  R[0][0] = 0;
  auto sm = [&](long double a, long double b, long double c) { long double lo = std::min(a, std::min(b, c)); return lo - gamma * logl(expl((lo - a) / gamma) + expl((lo - b) / gamma) + expl((lo - c) / gamma)); };
  for (int i = 1; i <= n; ++i) for (int j = 1; j <= m; ++j) { long double d = (long double)xs[i - 1] - ys[j - 1]; C[i][j] = d * d; R[i][j] = C[i][j] + sm(R[i - 1][j - 1], R[i - 1][j], R[i][j - 1]); }
  E[n][m] = 1;
  for (int i = n; i >= 1; --i) for (int j = m; j >= 1; --j) {
    long double pre = R[i][j] - C[i][j];
    auto give = [&](int a, int b) { if (a >= 1 && b >= 1) E[a][b] += E[i][j] * expl((pre - R[a][b]) / gamma); };
    give(i - 1, j - 1); give(i - 1, j); give(i, j - 1);
  }
  double verr = std::abs((double)(value - R[n][m])) / std::max(std::abs((double)R[n][m]), gamma), gx = 0, gy = 0;
  if (ok) {
    for (int s = strips - 1; s >= 0; --s) { BackwardStrip job; job.pair = 0; job.strip = s; Warp::get().run([&] { linear_backward_strip<S, Tile>(p, g, ext, job, saved, flows); }); }
    for (int i = 1; i <= n; ++i) { long double e = 0; for (int j = 1; j <= m; ++j) e += 2 * E[i][j] * ((long double)xs[i - 1] - ys[j - 1]); double d = std::abs((double)(e - dx[i - 1])); gx = d <= gx ? gx : d; if (!(d == d)) gx = NAN; }
    for (int j = 1; j <= m; ++j) { long double e = 0; for (int i = 1; i <= n; ++i) e -= 2 * E[i][j] * ((long double)xs[i - 1] - ys[j - 1]); double d = std::abs((double)(e - dy[j - 1])); gy = d <= gy ? gy : d; if (!(d == d)) gy = NAN; }
  }
  printf("%-28s R%d %dx%d g%g %s careful %d plain %d  value %g dx %g dy %g%s\n", name, S::kRows, n, m, gamma, ok ? "ok" : "REJECTED", CAREFUL, PLAIN, verr, gx, gy, (!ok || (verr < 1e-5 && gx < 4e-3 && gy < 4e-3)) ? "" : "   <<<<<");
  fflush(stdout);
  return ok;
}
#include <random>
std::vector<double> noise(int n, int seed) { std::mt19937 g(seed); std::normal_distribution<double> d; std::vector<double> v(n); for (auto& a : v) a = (float)d(g); return v; }
std::vector<double> flat(std::vector<std::pair<int, double>> runs) { std::vector<double> v; for (auto r : runs) v.insert(v.end(), r.first, r.second); return v; }
void all(const std::vector<double>& x, const std::vector<double>& y, double g, const char* name) {
  run<Shape<float, 4>, UnivariateTile<Shape<float, 4>, true>, float>(x, y, g, name);
  run<Shape<float, 8>, UnivariateTile<Shape<float, 8>, true>, float>(x, y, g, name);
  run<Shape<double, 2>, DenseTile<Shape<double, 2>>, double>(x, y, g, name);
}
int main(int c, char** v) {
  if (c > 1) { int rej = 0; for (int s = 0; s < atoi(v[1]); ++s) { auto x = noise(512, 1000 + s), y = noise(512, 5000 + s); if (s % 4 == 0) x[0] = 3 + s % 3; rej += !run<Shape<float, 8>, UnivariateTile<Shape<float, 8>, true>, float>(x, y, 1.0, "noise"); } printf("rejected %d\n", rej); return 0; }
  for (double g : {0.25, 0.31, 1.0}) all(flat({{70, 0}, {70, 5}}), flat({{70, 5}, {70, 0}}), g, "levels in opposite order");
  for (double g : {0.3, 1.0, 10.0}) all(noise(500, 1), noise(1, 2), g, "500x1");
  for (double g : {0.1, 1.0}) all(flat({{100, 5}, {100, 0}}), flat({{1, 0}, {1, 5}}), g, "two columns");
  for (double g : {0.1, 0.19, 0.3, 1.0}) all(flat({{600, 0}}), flat({{3, 4}, {37, 0}}), g, "rows rise");
  all(noise(300, 1), noise(5, 2), 1, "300x5");
  for (int s = 0; s < 6; ++s) all(noise(512, 10 + s), noise(512, 50 + s), 1.0, "noise");
  for (int s = 0; s < 3; ++s) all(noise(512, 10 + s), noise(512, 50 + s), 0.5, "noise");
  for (int s = 0; s < 3; ++s) all(noise(100, 10 + s), noise(100, 50 + s), 1.0, "noise");
  for (int s = 0; s < 2; ++s) all(noise(100, 10 + s), noise(100, 50 + s), 0.1, "noise");
}
