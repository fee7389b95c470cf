/** The folders under test/ of each vitest project: `npx vitest run --project NAME`. Every test file is in exactly one. */
export const PROJECTS: Readonly<Record<string, readonly string[]>> = {
  unit: ["unit"],
  contract: ["contract"],
  store: ["integration/store"],
  pipeline: ["integration/pipeline", "faults"],
  service: ["integration/service"],
  web: ["integration/web"],
  "local-servers": ["integration/local-servers"],
  reporting: ["reporting"],
  e2e: ["e2e"],
  browser: ["browser"],
};
