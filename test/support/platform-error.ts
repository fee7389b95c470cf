import { PlatformError } from "../../src/core/base/errors.ts";

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
