"""The reference trainers: their loop, native and portable operations, verification, benchmark and sweeps."""
