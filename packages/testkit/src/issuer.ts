import { createHash } from "node:crypto";
import { decodeJwt, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";

/** An authorization code that has not been exchanged. */
interface Grant {
  readonly challenge: string;
  readonly redirect_uri: string;
  readonly client_id: string;
  readonly claims: JWTPayload;
}

/** What an issuer sends a browser back with. */
export interface IssuerAnswer {
  readonly code: string;
  readonly state: string;
}

/** A test identity provider, whose answers tests can make wrong. */
export class Issuer implements Disposable {
  private keys = new Map<string, CryptoKeyPair>();
  private readonly grants = new Map<string, Grant>();
  private http = this.listen(0);
  private readonly port = this.http.port ?? 0;

  /** Overrides fields of its discovery document. */
  description: Record<string, unknown> = {};
  /** Answers requests for tokens instead of the issuer. */
  answerToken: ((request: Request) => Response | Promise<Response>) | null = null;
  /** Overrides claims of ID tokens. */
  idClaims: JWTPayload = {};
  /** What its userinfo endpoint answers besides the subject. */
  userinfo: Record<string, unknown> = {};
  /** The requests for tokens that it has received. */
  readonly tokenRequests: { authorization: string | null; body: URLSearchParams }[] = [];

  private listen(port: number) {
    return Bun.serve({
      port,
      hostname: "127.0.0.1",
      routes: {
        "/.well-known/openid-configuration": () => Response.json(this.metadata()),
        "/keys": async () => Response.json({ keys: await this.publicKeys() }),
        "/token": (request) => this.exchange(request),
        "/userinfo": (request) => Response.json({ ...subjectOf(request), ...this.userinfo }),
      },
    });
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  private metadata() {
    return {
      issuer: this.url,
      jwks_uri: `${this.url}/keys`,
      authorization_endpoint: `${this.url}/authorize`,
      token_endpoint: `${this.url}/token`,
      userinfo_endpoint: `${this.url}/userinfo`,
      ...this.description,
    };
  }

  private publicKeys() {
    const all = [...this.keys].map(async ([kid, { publicKey }]) => ({
      ...(await exportJWK(publicKey)),
      kid,
      alg: "ES256",
      use: "sig",
    }));
    return Promise.all(all);
  }

  /** Replaces all keys by a new one and returns its id. */
  async rotate(): Promise<string> {
    const kid = crypto.randomUUID();
    this.keys = new Map([[kid, await generateKeyPair("ES256", { extractable: true })]]);
    return kid;
  }

  key(): [kid: string, pair: CryptoKeyPair] {
    const [current] = this.keys;
    if (!current) throw new Error("the issuer has no key yet");
    return current;
  }

  /** A token for this username, valid unless the claims say otherwise. */
  token(username: string, claims: JWTPayload = {}, signedWith = this.key()): Promise<string> {
    const [kid, { privateKey }] = signedWith;
    return new SignJWT({ preferred_username: username, ...claims })
      .setProtectedHeader({ alg: "ES256", kid })
      .setIssuer(claims.iss ?? this.url)
      .setSubject(claims.sub ?? `subject of ${username}`)
      .setAudience(claims.aud ?? "parley")
      .setIssuedAt()
      .setExpirationTime(claims.exp ?? "5 minutes")
      .sign(privateKey);
  }

  /** Signs a person in at the issuer, as they would in their browser. */
  authorize(authorizationUrl: string, username: string, claims: JWTPayload = {}): IssuerAnswer {
    const { searchParams } = new URL(authorizationUrl);
    const parameter = (name: string) => searchParams.get(name) ?? "";
    const code = crypto.randomUUID();
    this.grants.set(code, {
      challenge: parameter("code_challenge"),
      redirect_uri: parameter("redirect_uri"),
      client_id: parameter("client_id"),
      claims: { preferred_username: username, nonce: parameter("nonce"), ...claims },
    });
    return { code, state: parameter("state") };
  }

  private async exchange(request: Request): Promise<Response> {
    const body = new URLSearchParams(await request.clone().text());
    this.tokenRequests.push({ authorization: request.headers.get("authorization"), body });
    if (this.answerToken) return this.answerToken(request);
    const grant = this.grants.get(body.get("code") ?? "");
    this.grants.delete(body.get("code") ?? "");
    const verifier = createHash("sha256").update(body.get("code_verifier") ?? "");
    const isRight =
      grant?.challenge === verifier.digest("base64url") &&
      grant.redirect_uri === body.get("redirect_uri");
    if (!isRight) return Response.json({ error: "invalid_grant" }, { status: 400 });
    const claims = { aud: grant.client_id, ...grant.claims, ...this.idClaims };
    const id_token = await this.token(String(grant.claims.preferred_username), claims);
    const access_token = Buffer.from(decodeJwt(id_token).sub ?? "").toString("base64url");
    return Response.json({ id_token, access_token, token_type: "Bearer" });
  }

  goAway(): Promise<void> {
    return this.http.stop(true);
  }

  comeBack(): void {
    this.http = this.listen(this.port);
  }

  [Symbol.dispose](): void {
    void this.http.stop(true);
  }
}

/** An access token of the issuer is the encoded subject. */
function subjectOf({ headers }: Request): { sub: string } {
  const [, token = ""] = /^Bearer (.+)$/.exec(headers.get("authorization") ?? "") ?? [];
  return { sub: Buffer.from(token, "base64url").toString() };
}
