import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

process.env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL("../../node_modules/.cache/node", import.meta.url));

/** `npm run chaos` (main.ts). One file at a time: it measures how long the service takes to recover. */
export default defineConfig({
  test: {
    root: fileURLToPath(new URL("../..", import.meta.url)),
    include: ["test/chaos/*.chaos.ts"],
    hookTimeout: 60_000,
    fileParallelism: false,
  },
});
