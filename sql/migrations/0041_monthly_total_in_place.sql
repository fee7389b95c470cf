-- Each load of a month adds to its rows. Where there is room beside it, a row changes in place and its key need not be
-- entered again. Rows of before take their room when they next change.
ALTER TABLE usage.monthly_total SET (fillfactor = 50);
