import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { filesOf, GATE, LONG_FILES } from "./projects.ts";

/**
 * The tests that Stryker runs against each mutant. Only projects whose tests run in their own process: a started program
 * does not know which mutant is active. `MUTATE_TESTS=unit` leaves out those that need a database.
 */
const TESTS = (process.env.MUTATE_TESTS ?? "unit,pipeline,store").split(",");

// Stryker runs a test again by its title. One that names a seed of its own run would not be found.
process.env.SEED ??= "1";

class FastestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = (file: TestSpecification) => TESTS.indexOf(file.project.name);
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  test: {
    projects: TESTS.map((name) => ({
      extends: true,
      test: { name, include: filesOf(GATE[name] ?? []), exclude: LONG_FILES },
    })),
    globalSetup: ["test/support/global-setup.ts"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    isolate: false,
    sequence: { sequencer: FastestFirst },
  },
});
