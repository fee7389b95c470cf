import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { PROJECTS } from "./test/support/projects.ts";

/** Files of these projects wait most of the time: for schedules, time-outs and processes. */
const WAITING = ["service", "local-servers"];
/** Of the others, files of these take longest, so they start first: no worker idles at the end beside a long file. */
const LONG = ["e2e", "store", "pipeline"];

/** Spreads files that wait over the run, so that others use the processors meanwhile. */
class WaitingAmongOthers extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const place = ({ project }: TestSpecification) =>
      LONG.includes(project.name) ? LONG.indexOf(project.name) : LONG.length;
    const waiting = WAITING.flatMap((name) => sorted.filter(({ project }) => project.name === name));
    const others = sorted.filter((file) => !waiting.includes(file)).sort((a, b) => place(a) - place(b));
    const spread = others.flatMap((file, i) => (i % 3 === 0 ? [...waiting.splice(0, 1), file] : [file]));
    return [...spread, ...waiting];
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
    // Two more than two cores: one or two of them wait.
    maxWorkers: 4,
    sequence: { sequencer: WaitingAmongOthers },
  },
});
