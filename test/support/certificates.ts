import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./temporary.ts";

export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** A CA of the test's own, made by openssl, which must be installed. */
export function createAuthority() {
  const folder = temporaryFolder();
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "pipe" });
  let made = 0;
  const request = (subject: string) => {
    const name = join(folder, `${made++}`);
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    openssl("req", ...curve, "-keyout", `${name}.key`, "-subj", `/CN=${subject}`, "-out", `${name}.csr`);
    return { cert: `${name}.pem`, key: `${name}.key`, csr: `${name}.csr` };
  };
  const ca = request("test CA");
  openssl("x509", "-req", "-in", ca.csr, "-signkey", ca.key, "-days", "2", "-out", ca.cert);
  return {
    ca: ca.cert,
    issue: (host: string, days = 2): Certificate => {
      const { cert, key, csr } = request(host);
      const names = `${csr}.names`;
      writeFileSync(names, `subjectAltName=${/^[\d.]+$/.test(host) ? "IP" : "DNS"}:${host}`);
      const signed = ["-CA", ca.cert, "-CAkey", ca.key, "-CAcreateserial", "-extfile", names];
      openssl("x509", "-req", "-in", csr, ...signed, "-days", `${days}`, "-out", cert);
      return { cert, key };
    },
  };
}
