// A reader such as `head` may leave early: the command goes on, and its exit code says what it did.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});
// Nobody can be told that stderr takes nothing, on a full disk for one.
process.stderr.on("error", () => {});
const { main } = await import("./cli/program.ts");
await main();
