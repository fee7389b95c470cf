import { Settings } from "luxon";

// No text here depends on a language. Without a fixed one luxon asks for the system's, which takes 40 ms and 7 MB of every command.
Settings.defaultLocale = "en-US";

export { DateTime, Duration } from "luxon";
