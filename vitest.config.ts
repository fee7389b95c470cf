import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { times } from "./test/support/drawn.ts";
import { filesOf, GATE, LONG_FILES, REST } from "./test/support/projects.ts";

/** `TESTS=gate` or `TESTS=rest`; without it all, so that a file that is named runs wherever it lies. */
const PART = process.env.TESTS;
const projects = [
  ...(PART === "rest"
    ? []
    : Object.entries(GATE).map(([name, of]) => ({ name, include: filesOf(of), exclude: LONG_FILES }))),
  ...(PART === "gate"
    ? []
    : [
        ...Object.entries(REST).map(([name, of]) => ({ name, include: filesOf(of) })),
        { name: "long", include: LONG_FILES },
      ]),
];

/** Files of these projects take longest, and mostly wait. */
const SLOW = ["journey", "service", "e2e", "local-servers", "browser"];
/** Of the quick files, so many run beside slow ones. The rest comes last, so that no worker idles at the end beside a long file. */
const BESIDE_SLOW = 0.85;

const lastOf = ({ project }: TestSpecification) => Number(project.name === "unit");

/** Slow files one by one among quick ones, so that while some wait others use the cores. */
class SlowAmongQuick extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const slow = sorted
      .filter(({ project }) => SLOW.includes(project.name))
      .sort((a, b) => SLOW.indexOf(a.project.name) - SLOW.indexOf(b.project.name));
    // A project's files stay together: its next file goes on in the same process. The shortest of all come last.
    const quick = sorted
      .filter(({ project }) => !SLOW.includes(project.name))
      .sort((a, b) => lastOf(a) - lastOf(b) || b.project.name.localeCompare(a.project.name));
    const placed = (quick.length * BESIDE_SLOW) / Math.max(1, slow.length);
    const mixed = slow.flatMap((file, i) => [
      file,
      ...quick.slice(Math.floor(i * placed), Math.floor((i + 1) * placed)),
    ]);
    return [...mixed, ...quick.slice(Math.floor(slow.length * placed))];
  }
}

// Tests and the programs they start load the same modules hundreds of times: Node keeps them compiled.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("node_modules/.cache/node", import.meta.url));

export default defineConfig({
  test: {
    projects: projects.map((test) => ({ extends: true, test })),
    globalSetup: ["test/support/global-setup.ts"],
    reporters: ["default", "./test/support/reporter.ts"],
    // A bound, not a measure: on a machine that others use too, a test may take ten times as long. No test sets a shorter one.
    testTimeout: times(600_000),
    hookTimeout: 300_000,
    // No test changes what another file sees (globals, module state), so files share processes and loaded modules.
    isolate: false,
    // One more than two cores: tests of the service wait for schedules and time-outs, and others work meanwhile. With four, tests
    // that wait for a fixed time meet their limits.
    maxWorkers: 3,
    sequence: { sequencer: SlowAmongQuick },
  },
});
