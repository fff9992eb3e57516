import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** What a session's path element says. */
export interface SessionClaims {
  readonly id: string;
  /** Milliseconds since the epoch, to the second. */
  readonly issued: number;
}

const ID_BYTES = 9;
const TIME_BYTES = 4;
const MAC_BYTES = 17;
const TOKEN_CHARS = ((ID_BYTES + TIME_BYTES + MAC_BYTES) * 4) / 3;

/**
 * Session tokens: id and issue time under a MAC over them and the stream, so that every node
 * with the key takes them without having met the session.
 */
export class SessionTokens {
  readonly #key: Buffer;
  readonly #stream: string;

  /** @param stream identity of the stream, the same on every node */
  constructor(key: Buffer, stream: string) {
    this.#key = key;
    this.#stream = stream;
  }

  issue(now = Date.now()): string {
    const claims = Buffer.alloc(ID_BYTES + TIME_BYTES);
    randomBytes(ID_BYTES).copy(claims);
    claims.writeUInt32BE(Math.floor(now / 1000), ID_BYTES);
    return Buffer.concat([claims, this.#mac(claims)]).toString('base64url');
  }

  /** The session that a token was issued to; undefined for any other text. */
  verify(token: string): SessionClaims | undefined {
    if (token.length !== TOKEN_CHARS) return undefined;
    const bytes = Buffer.from(token, 'base64url');
    // one spelling only: the decoder also takes others for the same bytes
    if (bytes.toString('base64url') !== token) return undefined;
    const claims = bytes.subarray(0, ID_BYTES + TIME_BYTES);
    if (!timingSafeEqual(this.#mac(claims), bytes.subarray(claims.length))) return undefined;
    return {
      id: claims.toString('base64url', 0, ID_BYTES),
      issued: claims.readUInt32BE(ID_BYTES) * 1000,
    };
  }

  #mac(claims: Buffer): Buffer {
    const mac = createHmac('sha256', this.#key).update(claims).update(this.#stream).digest();
    return mac.subarray(0, MAC_BYTES);
  }
}
