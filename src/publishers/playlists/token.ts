import { createHmac, timingSafeEqual } from 'node:crypto';

/** What a session's path element says. */
export interface SessionClaims {
  readonly id: string;
  /** Milliseconds since the epoch. */
  readonly issued: number;
}

const TIME_BYTES = 6;
const MAC_BYTES = 17;
const MAX_ID_CHARS = 128;
const MAX_TOKEN_CHARS = Math.ceil(((TIME_BYTES + MAX_ID_CHARS + MAC_BYTES) * 4) / 3);

/**
 * Session tokens of a stream: issue time and id under a MAC, so that every node with the key takes them
 * without having met the session.
 */
export class SessionTokens {
  /** Of this stream alone. */
  readonly #key: Buffer;

  /** @param stream identity of the stream, the same on every node */
  constructor(key: Buffer, stream: string) {
    this.#key = createHmac('sha256', key).update(stream).digest();
  }

  /** @param id of ASCII characters, 128 at most */
  issue(id: string, now = Date.now()): string {
    const claims = Buffer.alloc(TIME_BYTES + id.length);
    claims.writeUIntBE(now, 0, TIME_BYTES);
    claims.write(id, TIME_BYTES, 'latin1');
    return Buffer.concat([claims, this.#mac(claims)]).toString('base64url');
  }

  /** The session that a token was issued to; undefined for any other text. */
  verify(token: string): SessionClaims | undefined {
    if (token.length > MAX_TOKEN_CHARS) return undefined;
    const bytes = Buffer.from(token, 'base64url');
    // one spelling only: the decoder also takes others for the same bytes
    if (bytes.toString('base64url') !== token) return undefined;
    const length = bytes.length - MAC_BYTES;
    if (length <= TIME_BYTES) return undefined;
    const claims = bytes.subarray(0, length);
    if (!timingSafeEqual(this.#mac(claims), bytes.subarray(length))) return undefined;
    return { id: claims.toString('latin1', TIME_BYTES), issued: claims.readUIntBE(0, TIME_BYTES) };
  }

  #mac(claims: Buffer): Buffer {
    const mac = createHmac('sha256', this.#key).update(claims).digest();
    return mac.subarray(0, MAC_BYTES);
  }
}
