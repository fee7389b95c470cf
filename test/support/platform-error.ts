import { PlatformError } from "../../src/core/base/errors.ts";

/** A response of the platform that is no success, and that no other attempt changes. */
export const platformError = (status: number) =>
  new PlatformError({
    code: `status_${status}`,
    message: `it says ${status}`,
    next: "x",
    retryable: false,
    status,
    method: "GET",
    url: "https://x.example",
  });
