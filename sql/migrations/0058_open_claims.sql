-- Claims of a fetch task that neither ended nor were handed back: those of workers that crashed or lost their lock, and
-- the one at work. `attempts` also counts what workers of earlier releases took and handed back, so it cannot tell a
-- fetch task that ends its workers.
ALTER TABLE usage.fetch_task ADD COLUMN open_claims integer NOT NULL DEFAULT 0;
