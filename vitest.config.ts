import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { PROJECTS } from "./test/support/projects.ts";

/** Files of these projects take longest. They start first, so that no worker idles at the end beside a long file. */
const FIRST = ["service", "e2e", "local-servers", "store"];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = (file: TestSpecification) =>
      FIRST.includes(file.project.name) ? FIRST.indexOf(file.project.name) : FIRST.length;
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

// Tests and the programs they start load the same modules hundreds of times: Node keeps them compiled.
process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("node_modules/.cache/node", import.meta.url));

export default defineConfig({
  test: {
    projects: Object.entries(PROJECTS).map(([name, folders]) => ({
      extends: true,
      test: { name, include: folders.map((folder) => `test/${folder}/**/*.test.ts`) },
    })),
    globalSetup: ["test/support/global-setup.ts"],
    // A bound, not a measure: on a machine that others use too, a test may take ten times as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // No test changes what another file sees (globals, module state), so files share processes and loaded modules.
    isolate: false,
    // One more than two cores: tests of the service wait for schedules and time-outs, and others work meanwhile. With four, tests
    // that wait for a fixed time meet their limits.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
  },
});
