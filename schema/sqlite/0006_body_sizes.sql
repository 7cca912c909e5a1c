-- Bytes of a packed body, so that sums need not unpack it. NULL: stored before this column was there.
ALTER TABLE bodies ADD COLUMN size INTEGER;
