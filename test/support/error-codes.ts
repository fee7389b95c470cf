import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const WITHOUT_LITERAL = [
  "forbidden",
  "job_data_invalid",
  "job_unknown",
  "lock_lost",
  "network",
  "node_too_old",
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
const NO_CODES = ["custom", "code"];

export interface ErrorText {
  readonly message?: string | undefined;
  readonly next?: string | undefined;
}

export function errorCodes(): Map<string, ErrorText> {
  const files = ["src/terminal/*.ts", "{src,jobs}/**/*.{ts,js}"].flatMap((pattern) =>
    globSync(pattern, { cwd: ROOT }).sort(),
  );
  const sources = [...new Set(files)].map((file) => readFileSync(join(ROOT, file), "utf8"));
  const words = new Set(sources.flatMap((text) => text.match(/[a-z]+(?:_[a-z]+)*|_[a-z_]+/g) ?? []));
  const found = new Map<string, ErrorText>();
  for (const code of WITHOUT_LITERAL)
    if (words.has(code) || words.has(code.replace(/^[a-z]+/, ""))) found.set(code, {});
  for (const text of sources)
    for (const match of text.matchAll(/\bcode: "([a-z_]+)",?/g)) {
      const [whole, code = ""] = match;
      if (NO_CODES.includes(code)) continue;
      const message = literalAfter(text, match.index + whole.length, "message");
      const next = message && literalAfter(text, message.end, "next");
      if (found.get(code)?.message === undefined)
        found.set(code, { message: message?.said, next: next?.said });
    }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function literalAfter(
  text: string,
  start: number,
  member: string,
): { said: string; end: number } | undefined {
  const opening = new RegExp(`\\s*${member}:\\s*(["\`])`, "y");
  opening.lastIndex = start;
  const quote = opening.exec(text)?.[1];
  if (quote === undefined) return undefined;
  let said = "";
  let at = opening.lastIndex;
  for (; at < text.length && text[at] !== quote; at += 1) {
    if (text[at] === "\\") {
      at += 1;
      said += text[at] === "n" ? " " : text[at];
    } else if (quote === "`" && text.startsWith("${", at)) {
      at = endOfValue(text, at + 2);
      said += "…";
    } else said += text[at];
  }
  return { said: said.replaceAll(/\s+/g, " "), end: at + 2 };
}

function endOfValue(text: string, start: number): number {
  let depth = 1;
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}") depth -= 1;
    if (depth === 0) return at;
  }
  return text.length;
}
