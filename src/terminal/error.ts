import { CommanderError } from "commander";
import { EtlError, PlatformError, UsageError } from "../core/base/errors.ts";
import { faultOf } from "../core/base/faults.ts";

export interface ErrorFacts {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly stack?: string;
}

export function factsOf(given: unknown): ErrorFacts {
  const error = knownError(given);
  if (error instanceof EtlError) return { code: error.code, message: error.message, hint: error.next };
  const { name, message, stack = "" } = error instanceof Error ? error : new Error(String(error));
  const places = stack.split("\n").filter((line) => line.startsWith("    at "));
  return {
    code: "unexpected",
    message: `Unexpected ${name}: ${message}`,
    hint: "This is a defect. Report it with the whole message.",
    stack: places.join("\n"),
  };
}

/** Describes a refused request in one sentence, because the request may be longer than a screen. Else undefined. */
export function refusalOf(error: unknown): ErrorFacts | undefined {
  if (!(error instanceof PlatformError) || error.retryable) return undefined;
  const { code, status, words, next } = error;
  const said: Readonly<Record<string, string>> = {
    unauthorized: `The platform does not know this key (${status}).`,
    forbidden: `This key may not do that (${status}).`,
    request_refused: `The platform refused the request (${status})${words === "" ? "." : `: ${words.replace(/[^.?!]$/, "$&.")}`}`,
  };
  const message = said[code];
  return message === undefined
    ? undefined
    : { code, message, hint: `${next} Add --verbose to see the request.` };
}

export function describeError({ code, message, hint, stack }: ErrorFacts): string {
  return [`${message}\n  ${hint} [${code}]`, ...(stack === undefined ? [] : [stack])].join("\n");
}

export function knownError(error: unknown): unknown {
  return error instanceof CommanderError ? wrongCommandLine(error) : (faultOf(error) ?? error);
}

/** Commander's messages read `error: unknown option '--strid'`, then `(Did you mean --stride?)` on its own line. */
function wrongCommandLine({ code, message: said }: CommanderError): UsageError {
  const message = code === "commander.help" ? "the command is incomplete" : said;
  const [what = "", ...more] = message.replace(/^error: /, "").split("\n");
  const sentence = `${what.charAt(0).toUpperCase()}${what.slice(1)}`.replace(/[^.?!]$/, "$&.");
  return new UsageError({
    code: "command_line_invalid",
    message: [sentence, ...more.map((line) => line.replace(/^\((.*)\)$/, "$1"))].join(" "),
    next: "Add --help to see the options, or run `usage-etl help` to see the commands.",
  });
}
