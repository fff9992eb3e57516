import { createHmac, randomFillSync, timingSafeEqual } from 'node:crypto';
import { RtmpError } from './error.ts';

/** Length of C1, C2, S1 and S2 (RTMP specification section 5.2). */
export const HANDSHAKE_BYTES = 1536;

const VERSION = 3;
/** Content type of a TLS record that shakes hands (RFC 8446 section 5.1). */
const TLS_HANDSHAKE = 22;
const DIGEST_BYTES = 32;
/** Bytes of a block of the digest handshake in which the digest can lie, after the offset itself. */
const DIGEST_RANGE = 764 - 4 - DIGEST_BYTES;

const KEY_TAIL = Buffer.from('f0eec24a8068bee82e00d0d1029e7e576eec5d2d29806fab93b8e636cfeb31ae', 'hex');
const SERVER_NAME = Buffer.from('Genuine Adobe Flash Media Server 001');
const SERVER_KEY = Buffer.concat([SERVER_NAME, KEY_TAIL]);
const PLAYER_NAME = Buffer.from('Genuine Adobe Flash Player 001');

/** Position of the digest's offset: 8 bytes in (scheme 0) or after the key block (scheme 1). */
const OFFSET_POSITIONS = [8, 772] as const;
export type DigestScheme = 0 | 1;

/** Which key signs a first packet. */
export type Signer = 'server' | 'player';

/**
 * Server side of the handshake, simple or with digests as the client chooses.
 * Feed it the connection's first bytes; it takes exactly C0, C1 and C2.
 */
export class ServerHandshake {
  readonly #received = Buffer.allocUnsafe(1 + 2 * HANDSHAKE_BYTES);
  #length = 0;
  #answered = false;

  get done(): boolean {
    return this.#length === this.#received.length;
  }

  /**
   * @returns how many bytes of `data` belonged to the handshake, and what to send now, if anything
   * @throws RtmpError when the client asks for another protocol version
   */
  push(data: Buffer): { taken: number; answer: Buffer | undefined } {
    const taken = data.copy(this.#received, this.#length);
    this.#length += taken;
    const [version] = this.#received;
    if (this.#length > 0 && version !== VERSION) {
      throw new RtmpError(
        version === TLS_HANDSHAKE
          ? 'the client speaks TLS on a port without TLS'
          : `handshake asks for version ${version}, not ${VERSION}`,
      );
    }
    if (this.#answered || this.#length <= HANDSHAKE_BYTES) return { taken, answer: undefined };
    this.#answered = true;
    return { taken, answer: answerTo(this.#received.subarray(1, 1 + HANDSHAKE_BYTES)) };
  }
}

/** Client side of the handshake, in its simple form, which every server knows. It takes exactly S0, S1 and S2. */
export class ClientHandshake {
  readonly #received = Buffer.allocUnsafe(1 + 2 * HANDSHAKE_BYTES);
  #length = 0;

  get done(): boolean {
    return this.#length === this.#received.length;
  }

  /** C0 and C1. */
  first(): Buffer {
    const out = Buffer.alloc(1 + HANDSHAKE_BYTES);
    out[0] = VERSION;
    randomFillSync(out, 1 + 8);
    return out;
  }

  /**
   * @returns how many bytes of `data` belonged to the handshake, and C2 when it is to be sent now
   * @throws RtmpError when the server speaks another protocol
   */
  push(data: Buffer): { taken: number; answer: Buffer | undefined } {
    const had = this.#length;
    const taken = data.copy(this.#received, had);
    this.#length += taken;
    const [version] = this.#received;
    if (taken > 0 && version !== VERSION) throw new RtmpError('the server does not speak RTMP');
    const isDue = had <= HANDSHAKE_BYTES && this.#length > HANDSHAKE_BYTES;
    return { taken, answer: isDue ? Buffer.from(this.#received.subarray(1, 1 + HANDSHAKE_BYTES)) : undefined };
  }
}

/** S0, S1 and S2 for a client's C1. */
function answerTo(c1: Buffer): Buffer {
  const out = Buffer.allocUnsafe(1 + 2 * HANDSHAKE_BYTES);
  out[0] = VERSION;
  const s1 = out.subarray(1, 1 + HANDSHAKE_BYTES);
  const s2 = out.subarray(1 + HANDSHAKE_BYTES);
  const found = c1.readUInt32BE(4) === 0 ? undefined : findDigest(c1, 'player');
  randomFillSync(s1);
  s1.writeUInt32BE(0, 0);
  if (found === undefined) {
    s1.writeUInt32BE(0, 4);
    c1.copy(s2);
    return out;
  }
  s1.writeUInt32BE(0x0d0e0a0d, 4);
  signFirst(s1, 'server', found.scheme);
  randomFillSync(s2);
  const key = hmac(SERVER_KEY, found.digest);
  hmac(key, s2.subarray(0, HANDSHAKE_BYTES - DIGEST_BYTES)).copy(s2, HANDSHAKE_BYTES - DIGEST_BYTES);
  return out;
}

/** The digest of a C1 or S1, and the scheme it was placed by; undefined for a simple handshake. */
export function findDigest(packet: Buffer, signer: Signer): { scheme: DigestScheme; digest: Buffer } | undefined {
  for (const scheme of [0, 1] as const) {
    const at = digestPosition(packet, scheme);
    const digest = packet.subarray(at, at + DIGEST_BYTES);
    if (timingSafeEqual(digest, digestAround(packet, at, signer))) return { scheme, digest };
  }
  return undefined;
}

/** Places the digest into a C1 or S1 whose other bytes are final. */
export function signFirst(packet: Buffer, signer: Signer, scheme: DigestScheme): void {
  const at = digestPosition(packet, scheme);
  digestAround(packet, at, signer).copy(packet, at);
}

function digestPosition(packet: Buffer, scheme: DigestScheme): number {
  const at = OFFSET_POSITIONS[scheme];
  let sum = 0;
  for (let i = 0; i < 4; i++) sum += packet.readUInt8(at + i);
  return at + 4 + (sum % DIGEST_RANGE);
}

function digestAround(packet: Buffer, at: number, signer: Signer): Buffer {
  return createHmac('sha256', signer === 'server' ? SERVER_NAME : PLAYER_NAME)
    .update(packet.subarray(0, at))
    .update(packet.subarray(at + DIGEST_BYTES))
    .digest();
}

function hmac(key: Buffer, data: Buffer): Buffer {
  return createHmac('sha256', key).update(data).digest();
}
