import { EtlError, reasonOf } from "../core/base/errors.ts";
import { describeProxy } from "../core/base/proxy.ts";
import { EXIT, exitCodeOf, firstExit } from "./exit.ts";
import { wrapped } from "./output.ts";

/** `skip`: the check could not run, because something that it needs is missing. */
type Verdict = "pass" | "warn" | "fail" | "skip";

export interface Check {
  /** Null: a server that all sources share. */
  readonly source: string | null;
  readonly check: string;
  readonly status: Verdict;
  readonly finding: string;
  readonly code: string | null;
  readonly hint: string | null;
  readonly exit: number;
}

interface Problem {
  readonly code: string;
  readonly message: string;
  readonly next: string;
}

export interface Notes {
  pass(check: string, finding: string): undefined;
  skip(check: string, finding: string): undefined;
  warn(check: string, problem: Problem): undefined;
  /** Default of `exit`: the code of the problem. */
  fail(check: string, problem: Problem, exit?: number): undefined;
}

export function notesOf(checks: Check[], source: string | null): Notes {
  const add = (
    check: string,
    status: Verdict,
    finding: string,
    problem?: Problem,
    exit: number = EXIT.done,
  ) =>
    void checks.push({
      source,
      check,
      status,
      finding,
      code: problem?.code ?? null,
      hint: problem?.next ?? null,
      exit,
    });
  return {
    pass: (check, finding) => add(check, "pass", finding),
    skip: (check, finding) => add(check, "skip", finding),
    warn: (check, problem) => add(check, "warn", problem.message, problem),
    fail: (check, problem, exit) => add(check, "fail", problem.message, problem, exit ?? exitCodeOf(problem)),
  };
}

export function problemOf(error: unknown): EtlError {
  if (error instanceof EtlError) return error;
  return new EtlError({
    code: "failed",
    message: reasonOf(error),
    next: "Run it again. If the error stays, report it.",
    cause: error,
  });
}

export function noteProxy(target: URL, notes: Notes): void {
  try {
    const described = describeProxy(target);
    if (described !== undefined) notes.pass("proxy", described);
  } catch (error) {
    notes.fail("proxy", problemOf(error));
  }
}

export function exitOfChecks(checks: readonly Check[]): number {
  return firstExit(checks.filter(({ status }) => status === "fail").map(({ exit }) => exit));
}

export function checksToData(checks: readonly Check[]) {
  return checks.map(({ exit: _, ...check }) => check);
}

const SUMMARY: Readonly<Record<Verdict, string>> = {
  pass: "passed",
  warn: "warned",
  fail: "failed",
  skip: "not checked",
};

export function describeChecks(checks: readonly Check[]): string {
  const width = Math.max(...checks.map(({ check }) => check.length));
  const lines: string[] = [];
  let source: string | null = null;
  for (const one of checks) {
    if (one.source !== source) lines.push("", `source ${one.source}`);
    source = one.source;
    const hint = one.hint === null || one.status === "pass" ? "" : ` ${one.hint}`;
    const code = one.code === null ? "" : ` [${one.code}]`;
    lines.push(wrapped(`${one.status}  ${one.check.padEnd(width)}  `, `${one.finding}${hint}${code}`));
  }
  const counts = Object.entries(SUMMARY).flatMap(([status, word]) => {
    const { length } = checks.filter((one) => one.status === status);
    return length > 0 ? [`${length} ${word}`] : [];
  });
  return [...lines, "", `${counts.join(", ")}.`].join("\n");
}
