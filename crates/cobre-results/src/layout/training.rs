//! The tables of training: the results of iterations, and their times.

table! {
    /// The bound, the estimate and the size of the policy after each iteration.
    convergence in "training/convergence" {
        ITERATION iteration: usize, "", "number of the iteration, from 1";
        BOUND bound: f64, "", "bound on the optimal value: from below for a cost, from above for a revenue";
        ESTIMATE_MEAN estimate_mean: f64, "", "mean value of the policy on the forward passes of this iteration";
        ESTIMATE_HALF_WIDTH_95 estimate_half_width_95: Option<f64>, "",
            "half the width of the 95 % confidence interval of that mean; missing with one pass";
        ESTIMATE_PATHS estimate_paths: usize, "", "forward passes it is from";
        GAP gap: Option<f64>, "",
            "distance of the mean from the bound, relative to the bound; missing under a risk measure";
        CUTS cuts: usize, "", "cuts in use after this iteration";
        CUTS_ADDED cuts_added: usize, "", "cuts that this iteration has added";
        LP_SOLVES lp_solves: usize, "", "linear programs solved so far, by all ranks";
        UPPER_BOUND upper_bound: Option<f64>, "",
            "deterministic bound from the other side, from above for a cost; missing where none was computed";
    }
}

table! {
    /// The times of each iteration, and the difficulties of the solvers; differs from run to run.
    timings in "training/timings" {
        ITERATION iteration: usize, "", "number of the iteration, from 1";
        SECONDS seconds: f64, "s", "time since training began";
        FORWARD_SECONDS forward_seconds: f64, "s", "part of it in forward passes";
        BACKWARD_SECONDS backward_seconds: f64, "s", "part of it in backward passes, the bound included";
        COMMUNICATION_SECONDS communication_seconds: f64, "s",
            "part of it in collectives, waiting for other ranks included";
        HIGHS_SOLVES highs_solves: usize, "", "linear programs so far that HiGHS answered";
        REFACTORED refactored: usize, "", "how often the kernel computed an inverse anew because something was off";
        COLD_STARTS cold_starts: usize, "", "how often the kernel started from nothing because that did not help";
        FALLBACKS fallbacks: usize, "", "linear programs that the kernel gave up and HiGHS answered";
        RETRIES retries: usize, "", "how often HiGHS had to try in another way";
    }
}
