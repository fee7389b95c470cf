import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import type { Reporter, TestCase, TestModule, Vitest } from "vitest/node";
import { withCounterparts } from "../tools/counterparts.ts";

/**
 * Ends a run with a list of what was skipped and why. `COMPATIBILITY=write` also writes what was run against which counterpart into
 * docs/reference/compatibility.md; counterparts that this run did not use keep their row.
 */

const PAGE = new URL("../../docs/reference/compatibility.md", import.meta.url);

export default class SaysWhatWasSkipped implements Reporter {
  #named: RegExp | undefined;

  onInit(vitest: Vitest): void {
    this.#named = vitest.config.testNamePattern;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const tests = modules.flatMap((module) => [...module.children.allTests()]);
    const skipped = new Map<string, number>();
    for (const test of tests) {
      const result = test.result();
      if (result.state !== "skipped" || this.#named?.test(test.fullName) === false) continue;
      const why = result.note ?? `${basename(test.module.moduleId)} says so: ${test.fullName}`;
      skipped.set(why, (skipped.get(why) ?? 0) + 1);
    }
    if (skipped.size > 0) process.stdout.write("Skipped, and why:\n");
    for (const [why, count] of skipped) process.stdout.write(`  ${count} x ${why}\n`);
    if (process.env.COMPATIBILITY === "write") writeFileSync(PAGE, pageAfter(tests));
  }
}

function pageAfter(tests: readonly TestCase[]): string {
  const day = new Date().toISOString().slice(0, 10);
  return withCounterparts(readFileSync(PAGE, "utf8"), ({ version: versionOf, tests: [file, title = ""] }) => {
    const states = tests
      .filter(({ module, fullName }) => basename(module.moduleId) === file && fullName.startsWith(title))
      .map((test) => test.result().state)
      .filter((state) => state !== "skipped");
    const version = versionOf();
    if (states.length === 0 || version === undefined) return undefined;
    const passed = states.filter((state) => state === "passed").length;
    const result =
      passed === states.length ? `${passed} passed` : `${states.length - passed} of ${states.length} FAILED`;
    return { version, day, result };
  });
}
