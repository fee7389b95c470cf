/** A UTC instant in its shortest form: `2026-03-01` or `2026-03-01T05:00Z`. */
export function shortInstant(time: number | string): string {
  const text = new Date(time).toISOString();
  return text.endsWith("T00:00:00.000Z") ? text.slice(0, 10) : `${text.slice(0, 16)}Z`;
}
