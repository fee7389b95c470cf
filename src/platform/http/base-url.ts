import { UsageError } from "../../errors.ts";

/** `variable` holds the text. Error: `base_url_invalid`. */
export function parseBaseUrl(text: string, variable: string): URL {
  const url = URL.parse(text);
  const wrong =
    url === null || !/^https?:$/.test(url.protocol)
      ? "is not an http or https address"
      : url.username !== "" || url.password !== ""
        ? "has a user name or password"
        : url.search !== "" || url.hash !== ""
          ? "has a query or fragment"
          : undefined;
  if (url !== null && wrong === undefined) return url;
  // The message leaves out the text: it may have a password.
  throw new UsageError({
    code: "base_url_invalid",
    message: `${variable} ${wrong}.`,
    next: `Set ${variable} to the address of the platform, such as https://api.example.com or https://example.com/prefix.`,
  });
}
