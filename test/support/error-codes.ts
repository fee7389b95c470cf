import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Codes that the sources put together, choose by a status, or pass on as an argument. Those that are gone from the sources are left out. */
const WITHOUT_LITERAL = [
  "forbidden",
  "job_data_invalid",
  "job_unknown",
  "lock_lost",
  "network",
  "node_too_old",
  "period_invalid",
  "period_is_month",
  "period_not_over",
  "period_start_unknown",
  "period_unknown",
  "postgres_install_failed",
  "postgres_start_failed",
  "probe_differs",
  "probe_earlier_late",
  "probe_late",
  "probe_unanswered",
  "probe_undecided",
  "rate_limited",
  "redis_install_failed",
  "redis_start_failed",
  "request_refused",
  "server_error",
  "task_poisoned",
  "timeout",
  "unauthorized",
  "worker_error",
];
/** Zod's own code, and a word that `runs` prints as a heading. */
const NO_CODES = ["custom", "code"];

/** Every error code of the program with its message, in which … stands for a value; undefined where the sources hold no whole message. */
export function errorCodes(): Map<string, string | undefined> {
  const sources = ["src/**/*.{ts,js}", "jobs/*.ts"]
    .flatMap((pattern) => globSync(pattern, { cwd: ROOT }))
    .sort()
    .map((file) => readFileSync(join(ROOT, file), "utf8"));
  const words = new Set(sources.flatMap((text) => text.match(/[a-z]+(?:_[a-z]+)*|_[a-z_]+/g) ?? []));
  const found = new Map<string, string | undefined>();
  for (const code of WITHOUT_LITERAL)
    if (words.has(code) || words.has(code.replace(/^[a-z]+/, ""))) found.set(code, undefined);
  for (const text of sources)
    for (const match of text.matchAll(/\bcode: "([a-z_]+)",?\s*(?:message: (["`]))?/g)) {
      const [whole, code = "", quote] = match;
      if (NO_CODES.includes(code)) continue;
      const message = quote === undefined ? undefined : literalAt(text, match.index + whole.length, quote);
      found.set(code, found.get(code) ?? message);
    }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** A literal from after its opening quote, with … for each value that is put in. */
function literalAt(text: string, start: number, quote: string): string {
  let result = "";
  for (let at = start; at < text.length && text[at] !== quote; at += 1) {
    if (text[at] === "\\") {
      at += 1;
      result += text[at] === "n" ? " " : text[at];
    } else if (quote === "`" && text.startsWith("${", at)) {
      at = endOfValue(text, at + 2);
      result += "…";
    } else result += text[at];
  }
  return result.replaceAll(/\s+/g, " ");
}

/** Where the closing brace of a value in a template is. */
function endOfValue(text: string, start: number): number {
  let depth = 1;
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}") depth -= 1;
    if (depth === 0) return at;
  }
  return text.length;
}
