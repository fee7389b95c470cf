/** A server's address as it may be shown: without its password, wherever it stands. */
export function withoutPassword(url: string): string {
  if (!URL.canParse(url)) return "(an address that is not a URL)";
  const parsed = new URL(url);
  parsed.password = "";
  parsed.searchParams.delete("password");
  return parsed.href;
}
