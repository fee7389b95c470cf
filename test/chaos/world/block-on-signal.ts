/** Imported by a worker: SIGUSR2 blocks its event loop for 45 s, as an endless computation would. */

process.on("SIGUSR2", () => {
  const until = performance.now() + 45_000;
  while (performance.now() < until);
});
