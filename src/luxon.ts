import { createRequire } from "node:module";
import type * as Luxon from "luxon";

/** Of the build that BullMQ's cron-parser requires: an import would load another whole luxon beside it. */
const luxon = createRequire(import.meta.url)("luxon") as typeof Luxon;
export const { DateTime, Duration } = luxon;
export type DateTime = Luxon.DateTime;

// No text here depends on a language. Without it luxon asks for the system's, which takes 40 ms and 7 MB of every command.
luxon.Settings.defaultLocale = "en-US";
