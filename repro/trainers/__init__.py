"""The reference trainers: their loop, native and portable operations, benchmark and sweeps."""
