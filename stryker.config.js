/** `npm run mutate`: see CONTRIBUTING.md. What survives is explained in test/mutation.md. */
export default {
  mutate: [
    "src/core/domain/**/*.ts",
    "src/core/pipeline/{proof,source,sync}/*.ts",
    "src/core/store/{load,proof}/*.ts",
    "src/features/{close,costs}/*.ts",
  ],
  plugins: ["@stryker-mutator/vitest-runner"],
  testRunner: "vitest",
  vitest: { configFile: "test/support/vitest.mutate.ts" },
  coverageAnalysis: "perTest",
  // Every file that is loaded once would have to be loaded again for each of them.
  ignoreStatic: true,
  concurrency: 1,
  // A test that waits for a database on a busy machine is no endless loop.
  timeoutMS: 60_000,
  // No such file: Stryker would rewrite tsconfig.json with an API that TypeScript 7 does not have.
  tsconfigFile: "none",
  cleanTempDir: "always",
  reporters: ["clear-text", "progress-append-only", "json", "html"],
  clearTextReporter: { reportTests: false, allowColor: false },
};
