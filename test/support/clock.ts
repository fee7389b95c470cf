/**
 * The instant that Postgres's clock has too. Views count days up to the real today, so tests that load recent days take their days
 * from here. What a test compares with an instant of the store, it takes from `storeNow`.
 */
export const now = (): number => Date.now();
