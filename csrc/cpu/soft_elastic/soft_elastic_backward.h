// Backward of one strip of a soft elastic measure, as backward.h has it.

template <StepKind kKind, typename T>
void recompute_steps(
    Sweep<T>& sweep, const SoftElastic<T>& pair, const Table<T>& table, const Strip& strip, int64_t first, int64_t last,
    T* shares) {
  StepBlock<T> cost;
  resume_segment(sweep, *pair.table, table, strip, first);
  for (int64_t step = first; step <= last; step += kSteps) {
    const int64_t count = last - step + 1 < kSteps ? last - step + 1 : kSteps;
    elastic_block<kKind, true>(sweep, pair, table, strip, step, count, cost, shares + (step - first) * 3 * kRows);
  }
}

// What is done with the masses of a part of a strip. Of one dimension the sums are taken on the way, where only series and gaps
// have gradients; otherwise the masses are kept until the part is done.
template <typename T>
class ElasticGoBack {
 public:
  ElasticGoBack(
      const SoftElastic<T>& pair, const ElasticScratch<T>& scratch, const Scratch<T>& part, int64_t row, int64_t first,
      int64_t last, Reverse<T>& reverse, ElasticTotals* totals)
      : pair_(pair),
        scratch_(scratch),
        part_(part),
        row_(row),
        first_(first),
        last_(last),
        reverse_(reverse),
        totals_(totals) {}

  void operator()() {
    switch (pair_.measure) {
      case Measure::kMatrix:
        keep<Measure::kMatrix>();
        write_masses(pair_, scratch_, row_, first_, last_, part_.weights);
        return total<StepKind::kEach>();
      case Measure::kMsm:
        if (!totals_) return take<MsmGradient<T>>();
        keep<Measure::kMsm, MsmGradient<T>>();
        return total<StepKind::kEach>();
      case Measure::kWeighted:
        if (is_line(Cost::kSqEuclidean)) return take<DistanceGradient<Measure::kWeighted, SqEuclidean<VectorMath<T>>, T>>();
        keep<Measure::kWeighted>();
        total<StepKind::kCell>();
        return distances();
      case Measure::kTwed:
        if (scratch_.x_times) return gaps<Measure::kTwed, TimesGradient<T>>();
        return gaps<Measure::kTwed>();
      default:
        return gaps<Measure::kEdit>();
    }
  }

 private:
  template <class... Parts>
  void take() {
    Together<Parts...> sink(pair_, scratch_, row_);
    reverse_.runs(*pair_.table, part_, row_, first_, last_, sink);
  }
  template <Measure kMeasure, class... Parts>
  void keep() {
    take<Parts..., StoredMasses<kMeasure, T>>();
  }

  // The sums are taken on the way, of the cost that a measure has in one dimension.
  bool is_line(Cost cost) const { return !totals_ && pair_.table->dim == 1 && pair_.table->cost == cost; }

  template <Measure kMeasure, class... Parts>
  void gaps() {
    const bool has_slopes = pair_.measure == Measure::kEdit || pair_.measure == Measure::kTwed;
    if (has_slopes && is_line(Cost::kCityblock))
      return take<DistanceGradient<kMeasure, Cityblock<VectorMath<T>>, T>, GapGradient<T>, Parts...>();
    keep<kMeasure, GapGradient<T>, Parts...>();
    total<StepKind::kGaps>();
    if (has_slopes) distances();
  }

  template <StepKind kKind>
  void total() const {
    if (totals_) add_costs<kKind>(pair_, row_, first_, last_, part_.weights, *totals_);
  }
  void distances() const { add_gradient_of_costs(*pair_.table, part_, row_, first_, last_, part_.weights); }

  const SoftElastic<T>& pair_;
  const ElasticScratch<T>& scratch_;
  const Scratch<T>& part_;
  const int64_t row_, first_, last_;
  Reverse<T>& reverse_;
  ElasticTotals* const totals_;
};

template <typename T>
void soft_elastic_backward(
    const SoftElastic<T>& pair, const Table<T>& table, const ElasticScratch<T>& scratch, StripState* states,
    int64_t index) {
  Sweep<T> sweep;
  Reverse<T> reverse;
  const Strip strip = strip_of(*pair.table, index * kRows);
  reverse_strip(
      *pair.table, scratch, states, strip, reverse,
      [&](int64_t first, int64_t last) {
        with_kind(pair.measure, [&](auto kind) {
          recompute_steps<decltype(kind)::value>(sweep, pair, table, strip, first, last, scratch.weights);
        });
      },
      [&](const Scratch<T>& part, int64_t first, int64_t last) {
        ElasticTotals* const totals = scratch.totals ? scratch.totals + index : nullptr;
        ElasticGoBack<T>(pair, scratch, part, strip.row, first, last, reverse, totals)();
      });
}
