//! The page on which operators see what is stuck, and settle it.
