/** `npm run mutate`: see CONTRIBUTING.md. What survives is explained in test/mutation.md. */
export default {
  mutate: [
    "src/domain/{planning,time,usage}/*.ts",
    "src/pipeline/sync/*.ts",
    "src/pipeline/totals/*.ts",
    "src/store/load/*.ts",
    "src/store/reconcile/*.ts",
    "src/store/report/month-close.ts",
  ],
  testRunner: "vitest",
  vitest: { configFile: "test/support/vitest.mutate.ts" },
  coverageAnalysis: "perTest",
  // Every file that is loaded once would have to be loaded again for each of them.
  ignoreStatic: true,
  concurrency: 1,
  // No such file: Stryker would rewrite tsconfig.json with an API that TypeScript 7 does not have.
  tsconfigFile: "none",
  cleanTempDir: "always",
  reporters: ["clear-text", "progress-append-only", "json", "html"],
  clearTextReporter: { reportTests: false, allowColor: false },
};
