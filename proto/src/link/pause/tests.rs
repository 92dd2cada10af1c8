//! The timers of pause, exactly.
