/** Hides the password in authority and query. */
export function withoutPassword(url: string): string {
  if (!URL.canParse(url)) return "(an address that is not a URL)";
  const parsed = new URL(url);
  parsed.password = "";
  parsed.searchParams.delete("password");
  return parsed.href;
}
