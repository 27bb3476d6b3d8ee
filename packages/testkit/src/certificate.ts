import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A self-signed certificate for localhost, in temporary files. */
export function selfSigned() {
  const folder = mkdtempSync(join(tmpdir(), "parley-certificate-"));
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const { exitCode, stderr } = Bun.spawnSync([
    ...["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
    ...["-nodes", "-days", "2", "-subj", "/CN=localhost"],
    ...["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
    ...["-keyout", key, "-out", cert],
  ]);
  if (exitCode !== 0) throw new Error(`openssl failed: ${stderr}`);
  return { cert, key, [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}
