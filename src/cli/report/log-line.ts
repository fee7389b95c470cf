import { printableLine } from "../../printable.ts";

/** Fields of a log line that a person at a terminal needs no more than once, or not at all. */
const LEFT_OUT = new Set(["level", "time", "msg", "code", "reason", "source"]);
const LEVELS: Readonly<Record<number, string>> = { 10: "trace", 20: "debug", 30: "info", 40: "warning" };

/** A JSON line of the log as a sentence, such as `warning: default: held back: GET ... answered 429. [rate_limited]`. */
export function describeLogLine(json: string): string {
  const line = JSON.parse(json) as Record<string, unknown>;
  const { level, msg, code, reason, source } = line;
  const said = [source, msg, reason].filter((one) => one !== undefined).map(printableLine);
  const rest = Object.entries(line)
    .filter(([name]) => !LEFT_OUT.has(name))
    .map(([name, value]) => ` ${name}=${printableLine(value)}`);
  const end = code === undefined || code === "" ? "" : ` [${printableLine(code)}]`;
  return `${LEVELS[Number(level)] ?? "error"}: ${said.join(": ")}${rest.join("")}${end}`;
}
