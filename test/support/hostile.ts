export const HOSTILE = {
  workspaces: [`<script>alert(1)</script>`, `second "&amp;' \u202Eevil\u202C ${"w".repeat(975)}`],
  projects: [
    `"><img src=x onerror=alert(1)>`,
    `' onfocus='alert(1)' autofocus='`,
    "\u202Eevil\u202C \u2066isolated\u2069 \u200Fמפתח",
    `long ${"x".repeat(995)}`,
    " ",
    "</title></script></svg><svg onload=alert(1)>",
    "line\nbreak\r\nand\u0000\u001b[31mcontrols",
  ],
  emails: [
    `"<b>bold</b>"@example.com`,
    `<svg/onload=alert(2)>@xämple.com`,
    `\u202Egro.live@\u202Cexample.com`,
    `${"u".repeat(988)}@example.com`,
  ],
  person: `<b onmouseover=alert(5)>"ana"</b> \u202Eelor\u202C ${"p".repeat(150)}`,
  keys: [
    `<script>alert(3)</script>`,
    `"' onmouseover='alert(4)'`,
    `sk \u202Edetrever\u202C`,
    `k${"y".repeat(499)}`,
  ],
} as const;
