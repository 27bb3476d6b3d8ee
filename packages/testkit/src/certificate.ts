import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A self-signed certificate, by default for localhost, in temporary files. */
export function selfSigned(alternativeNames = "DNS:localhost,IP:127.0.0.1") {
  const folder = mkdtempSync(join(tmpdir(), "parley-certificate-"));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const { exitCode, stderr } = Bun.spawnSync([
    ...["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    ...["-nodes", "-days", "2", "-subj", "/CN=localhost"],
    ...["-addext", `subjectAltName=${alternativeNames}`],
    ...["-keyout", key, "-out", cert],
  ]);
  if (exitCode !== 0) throw new Error(`openssl failed: ${stderr}`);
  return { cert, key, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}
